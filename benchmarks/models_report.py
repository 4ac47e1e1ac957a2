def report(rows, picture):
    pass
