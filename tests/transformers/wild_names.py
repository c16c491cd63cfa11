"""Names that would end a comment, a text or a statement of a written program."""

WILD = [
    "plain",
    'it\'s "quoted"',
    "K'",
    '4"',
    '"""',
    "'''",
    "ends in a backslash\\",
    "two\nlines",
    "carriage\rreturn and \x0c form feed \x0b tab \t",
    "\\N{BULLET} {braces} %s %(x)s",
    "# no comment\nimport os; os.abort()",
    "')]; raise SystemExit(9) #",
    "übergröße 漢字 \u2028 \u202e \x00 \x1b[31m",
]
