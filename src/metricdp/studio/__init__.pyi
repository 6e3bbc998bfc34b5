"""Studio: the service with a page in front of it, for people, on their own machine."""

from .auth import StudioAuth as StudioAuth
from .budget import BudgetPanel as BudgetPanel
from .design import AuditPanel as AuditPanel
from .design import DesignPanel as DesignPanel
from .feel import CROSSINGS as CROSSINGS
from .feel import FACTOR_DISTANCES as FACTOR_DISTANCES
from .feel import SNAP as SNAP
from .feel import FeelPanel as FeelPanel
from .feel import ReportClouds as ReportClouds
from .protect import ProtectPanel as ProtectPanel
from .server import Studio as Studio
from .server import StudioOptions as StudioOptions
from .server import run as run
from .sessions import LOCK as LOCK
from .sessions import MARK as MARK
from .sessions import PREFIX as PREFIX
from .sessions import Pages as Pages
from .sessions import SessionFolder as SessionFolder
from .sessions import remove_orphans as remove_orphans
from .web import PAGE as PAGE
from .web import page as page
from .web import panel_application as panel_application
