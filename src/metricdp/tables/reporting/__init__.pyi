"""From what was done to a table to the page that people read and the record that programs read."""

from .pages import PAGE as PAGE
from .pages import citation as citation
from .pages import distribution_record as distribution_record
from .pages import page_of_table as page_of_table
from .pages import record_of as record_of
from .pages import write_record as write_record
from .preview import Preview as Preview
from .texts import evaluation_cells as evaluation_cells
from .texts import page_of_choices as page_of_choices
from .texts import page_of_texts as page_of_texts
from .texts import record_of_texts as record_of_texts
from .texts import staying_words as staying_words
from .texts import word_pairs as word_pairs
