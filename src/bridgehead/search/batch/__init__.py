"""A file of queries in, a parquet file of hits out, in bounded memory; goes on where it was interrupted.

`query_files` reads queries, `hits_table` says what a row of hits is, `searching` does the work. What an answer is
belongs to `search` itself.
"""

from bridgehead.search.batch.query_files import QueryRow, read_queries
from bridgehead.search.batch.searching import BatchReport, search_file

__all__ = ["BatchReport", "QueryRow", "read_queries", "search_file"]
