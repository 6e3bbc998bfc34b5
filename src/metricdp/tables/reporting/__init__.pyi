"""From what was done to a table to the page that people read and the record that programs read."""

from metricdp.tables.reporting.pages import PAGE as PAGE
from metricdp.tables.reporting.pages import citation as citation
from metricdp.tables.reporting.pages import law_told as law_told
from metricdp.tables.reporting.pages import record_of as record_of
from metricdp.tables.reporting.pages import release_of as release_of
from metricdp.tables.reporting.pages import write_record as write_record
from metricdp.tables.reporting.preview import Preview as Preview
from metricdp.tables.reporting.texts import page_of_choices as page_of_choices
from metricdp.tables.reporting.texts import page_of_texts as page_of_texts
from metricdp.tables.reporting.texts import record_of_texts as record_of_texts
from metricdp.tables.reporting.texts import staying_words as staying_words
from metricdp.tables.reporting.texts import word_pairs as word_pairs
