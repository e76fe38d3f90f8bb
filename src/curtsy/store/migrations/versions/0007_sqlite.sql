-- Pages that wait for a browser: an index of their own, and the counts of hosts that need one.
CREATE INDEX urls_render ON urls (crawl, host, seq) WHERE state = 'open' AND kind = 'b';

ALTER TABLE hosts ADD COLUMN render_needed INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE hosts ADD COLUMN render_plain INTEGER DEFAULT 0 NOT NULL;
