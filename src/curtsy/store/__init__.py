"""The database and the segments: everything durable.

Functions take an open transaction `tx` and never commit; `engine.Store` begins, commits and repeats transactions.

Lock order
==========
PostgreSQL locks rows. Two transactions that lock the same rows in different orders deadlock, and one of them has to be
repeated. So every transaction locks tables in this order, and rows within a table by their key:

    crawls that have max_pages      n; their count decides which pages are surplus
    hosts, robots                   host; origin
    queues                          (crawl, host)
    urls                            (crawl, fp)
    segments                        name
    pages                           (fp, crawl)
    responses                       n; inserted rows have no order
    requests                        no row locks; an advisory lock for partitions and deletions
    failures                        (fence, ordinal)
    outbox, results                 n; (crawl, subject, stage)
    records, reviews, citations, sources, llm_cache
    templates                       n; before their template_pages and selectors
    other crawls                    n
    crawl_members, crawl_counts     (crawl, member); (crawl, state, reason)
    crawl_rates                     (crawl, at_s)
    the webhook row in the outbox   inserted under its crawl's lock
    schedules, runs, deletions, erasures, audit_log, meta

The rules that keep it:

- A statement over several existing rows locks them with `rows.Lock` first: UPDATE ... FROM and DELETE lock in the order
  of their plan. `INSERT ... ON CONFLICT` gets its rows sorted. Text sorts by code point, in Python and in SQL.
- A transaction that changes a table in several steps locks all its rows of that table before the first step.
- New rows are inserted before existing ones of the same table are locked (`queues.lock`), or after (`urls`, whose
  inserts ignore existing rows): the two never mix within a table.
- A transaction that reads the outbox to change its crawl's state locks the crawl first (`finish_if_extracted`, replay
  of stages). After that it locks only rows of `outbox` and `failures` that belong to stages, which no commit locks.
- `FOR UPDATE SKIP LOCKED` never waits and needs no order.

SQLite has one writer at a time and needs none of this. `curtsy_store_retries_total{cause="deadlock"}` counts
violations; tests/store/test_lock_order.py expects none.
"""
