"""Filters on payload: a typed expression, what it means for one item, and how SQLite finds all items it is true of.

`parse` reads the text form and `json_form` the JSON form into `expression`; `values` says which values a payload has;
`table` keeps them in the item file, `sql` and `matching` find them and `facts` describes them. Not about payload
itself, which is stored with the items, nor about words and vectors.
"""

from bridgehead.index.where.expression import Where
from bridgehead.index.where.facts import FieldFacts, field_facts
from bridgehead.index.where.json_form import where_from_json
from bridgehead.index.where.matching import matching_numbers
from bridgehead.index.where.parse import parse_where
from bridgehead.index.where.table import FIELDS_SCHEMA, field_records, remove_fields, write_fields

__all__ = [
    "FIELDS_SCHEMA",
    "FieldFacts",
    "Where",
    "field_facts",
    "field_records",
    "matching_numbers",
    "parse_where",
    "remove_fields",
    "where_from_json",
    "write_fields",
]
