"""Explain: paste a URL or a host, and read why it is not done."""

from __future__ import annotations

from flask import Response, request

from curtsy.errors import CurtsyError
from curtsy.web.api import explain as api
from curtsy.web.dashboard.site import Visit, valid, view
from curtsy.web.models.explain import ExplainQuery
from curtsy.web.problems import Problem


@view("GET", "/explain")
def explain(visit: Visit) -> Response:
    asked = request.args.get("url", "").strip()
    crawl = request.args.get("crawl", "").strip()
    if not asked:
        return visit.page("explain.html", asked="", crawl=crawl, found=None, problem=None)
    bare = "://" not in asked and "/" not in asked
    given = {"host": asked} if bare else {"url": asked if "://" in asked else f"https://{asked}"}
    try:
        query = valid(ExplainQuery, "query", given | ({"crawl": crawl} if crawl and not bare else {}))
        found = api.explain(visit.call(query))
    except (Problem, CurtsyError) as error:
        problem = visit.site.problem_of(error)
        if problem.status >= 500:
            raise
        return visit.page("explain.html", problem.status, asked=asked, crawl=crawl, found=None, problem=problem)
    return visit.page("explain.html", asked=asked, crawl=crawl, found=found, problem=None)
