"""Grafana's dashboards, defined once: ``cluster/grafana/`` and ``peagle dashboards push`` are made from this."""

from grafana_foundation_sdk.builders import common, prometheus, timeseries
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, SortOrder, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableOption, VariableRefresh, VariableSort

from app.cluster.panels import DASHBOARDS

FOLDER = "peagle-serve"  # its title, and its name in Grafana's addresses
SOURCE_UID = "peagle-prometheus"  # its name too
SOURCE = DataSourceRef(type_val="prometheus", uid=SOURCE_UID)
WIDTH, HEIGHT = 8, 8  # three panels a row of Grafana's 24 columns


def data_source(url: str) -> dict[str, str]:
    """Prometheus at ``url``, as Grafana's API and its provisioning take it."""
    return {"name": SOURCE_UID, "uid": SOURCE_UID, "type": "prometheus", "access": "proxy", "url": url}


def uid(title: str) -> str:
    """The dashboard's name in Grafana's addresses."""
    return "peagle-" + title.lower().replace(" ", "-")


def build(title: str) -> board.Dashboard:
    """A dashboard of ``DASHBOARDS``, with a choice of endpoints."""
    built = (
        board.Dashboard(f"peagle-serve: {title}")
        .uid(uid(title))
        .tags(["peagle-serve"])
        .refresh("10s")
        .time("now-30m", "now")
        .timezone("browser")
        .with_variable(
            board.QueryVariable("endpoint")
            .label("Endpoint")
            .datasource(SOURCE)
            .query("label_values(ray_peagle_endpoint_status, endpoint)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(VariableSort.ALPHABETICAL_ASC)
            .multi(True)
            .include_all(True)
            .all_value(".*")
            .current(VariableOption(selected=True, text="All", value="$__all"))
        )
    )
    for panel in DASHBOARDS[title]:
        chart = (
            timeseries.Panel()
            .title(panel.title)
            .description(panel.description)
            .unit(panel.unit)
            .datasource(SOURCE)
            .span(WIDTH)
            .height(HEIGHT)
            .min(0)
            .legend(common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True))
            .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        )
        for letter, query in zip("ABCD", panel.queries, strict=False):
            chart = chart.with_target(prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(letter))
        built = built.with_panel(chart)
    return built


def as_json(title: str) -> str:
    """A dashboard as Grafana imports it."""
    return JSONEncoder(sort_keys=True, indent=2).encode(build(title).build()) + "\n"
