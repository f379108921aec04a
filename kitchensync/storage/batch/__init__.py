"""Work on many recordings: in this process, in several, or on a Dask cluster."""
