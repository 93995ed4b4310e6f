"""Writes the rows on standard input as a workbook: write.py openpyxl|xlsxwriter FILE; then prints what openpyxl reads."""
import json
import sys

import openpyxl
import xlsxwriter

writer, path = sys.argv[1:]
rows = json.load(sys.stdin)
if writer == "openpyxl":
    book = openpyxl.Workbook()
    hidden = book.active
    hidden.title = "notes"
    hidden["A1"] = "not this one"
    hidden.sheet_state = "hidden"
    sheet = book.create_sheet("sites")
    for line, row in enumerate(rows, 1):
        for column, value in enumerate(row, 1):
            if value is not None:
                cell = sheet.cell(line, column, value)
                if isinstance(value, str):
                    cell.data_type = "s"
    book.active = 1
    book.save(path)
else:
    book = xlsxwriter.Workbook(path, {"strings_to_numbers": False, "constant_memory": len(rows) > 100})
    sheet = book.add_worksheet("sites")
    for line, row in enumerate(rows):
        for column, value in enumerate(row):
            if isinstance(value, str):
                sheet.write_string(line, column, value)
            elif value is not None:
                sheet.write_number(line, column, value)
    book.close()
read = openpyxl.load_workbook(path, data_only=True)["sites"]
json.dump([[cell.value for cell in row] for row in read.iter_rows()], sys.stdout)
