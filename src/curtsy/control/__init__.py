"""What people and programs ask of crawls: submit, pause, replay, schedule, delete, audit, explain."""
