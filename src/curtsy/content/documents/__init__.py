"""Readers of files that are not HTML: PDF, office documents, EPUB, RTF, CSV and plain text.

`sniff.kind_of` recognizes a file, `reading.read_document` reads it, and `model` has the values that result. A file from
a site is read by `services.document_process`, in a process with limits. Only that process imports the readers.
"""
