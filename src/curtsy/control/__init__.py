"""Operations on crawls for users and programs: submit, pause, replay, schedule, delete, audit, explain."""
