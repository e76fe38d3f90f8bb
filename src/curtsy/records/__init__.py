"""From committed pages to records: extraction, scoring, review, webhooks."""
