"""From a task's page in Airflow to its crawl in Curtsy's dashboard."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink

#: XCom key of the address, set before the task defers, so that the link works while the crawl runs
XCOM_KEY = "curtsy_crawl_url"


class CurtsyCrawlLink(BaseOperatorLink):
    """Shown as a button on the task instance's page."""

    name = "Crawl in Curtsy"

    @property
    def xcom_key(self) -> str:
        return XCOM_KEY

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Called once, in the process of a task that succeeded; the result replaces the earlier value of `xcom_key`."""
        return str(getattr(operator, "crawl_url", None) or "")
