"""Tables in files as streams of record batches; each format is one file with one declaration."""

from .base import BATCH_ROWS as BATCH_ROWS
from .base import FORMATS as FORMATS
from .base import INPUT_FILE as INPUT_FILE
from .base import MEASURED_ROWS as MEASURED_ROWS
from .base import OPEN_FILES as OPEN_FILES
from .base import PACKINGS as PACKINGS
from .base import STANDARD as STANDARD
from .base import FileReader as FileReader
from .base import Format as Format
from .base import Location as Location
from .base import Reader as Reader
from .base import Storage as Storage
from .base import Writer as Writer
from .base import batch_rows as batch_rows
from .base import file_of as file_of
from .base import is_table as is_table
from .base import locate_table as locate_table
from .base import open_reader as open_reader
from .base import open_writer as open_writer
from .base import read_batches as read_batches
from .base import reading as reading
from .base import target_location as target_location
from .parquet import ParquetReader as ParquetReader
