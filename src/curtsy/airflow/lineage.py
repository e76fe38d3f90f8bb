"""OpenLineage events of a crawl: the sites that it read, the crawl, and the files that it was exported to.

Airflow calls this only if its OpenLineage provider is installed, which has the classes that are imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

#: of very many seeds, the origins that come first
_MOST_SITES = 200


def of_crawl(seeds: Sequence[str], crawl_url: str, crawl_id: str, pages: int, targets: Sequence[str]) -> Any:
    """Datasets by OpenLineage's rules for names: a namespace that is an authority, and a name within it."""
    # Provided by the extra that calls this.
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import output_statistics_output_dataset

    sites = list(dict.fromkeys(_origin(seed) for seed in seeds))[:_MOST_SITES]
    rows = {"outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=pages)}
    names = [(_origin(crawl_url), f"crawls/{crawl_id}"), *map(_file, targets)]
    return OperatorLineage(
        inputs=[InputDataset(namespace=site, name="/") for site in sites],
        outputs=[OutputDataset(namespace=namespace, name=name, outputFacets=rows) for namespace, name in names],
    )


def _origin(url: str) -> str:
    parts = urlsplit(url if "://" in url else f"https://{url}")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _file(target: str) -> tuple[str, str]:
    scheme, mark, rest = target.partition("://")
    if not mark:
        return "file", str(Path(target).absolute())
    place, _, name = rest.partition("/")
    return f"{scheme}://{place}", name
