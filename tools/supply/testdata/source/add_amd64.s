// want: is not Go
TEXT ·add(SB), $0
	RET
