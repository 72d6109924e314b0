#include "textflag.h"

// 32 quotes, backslashes and last control characters.
DATA marks<>+0(SB)/8, $0x2222222222222222
DATA marks<>+8(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA marks<>+16(SB)/8, $0x1f1f1f1f1f1f1f1f
GLOBL marks<>(SB), RODATA|NOPTR, $24

// func blocks(b *byte, n int) (passed int)
//
// SI is where the text begins, BX how far it was passed, CX where it ends. R8
// and R9 have a bit for each character that may follow a backslash alone: up to
// 0x3f the quote and the slash, from 0x40 on the backslash, b, f, n, r and t.
TEXT ·blocks(SB), NOSPLIT, $0-24
	MOVQ         b+0(FP), SI
	MOVQ         n+8(FP), CX
	VPBROADCASTQ marks<>+0(SB), Y10
	VPBROADCASTQ marks<>+8(SB), Y11
	VPBROADCASTQ marks<>+16(SB), Y12
	MOVQ         $0x0000800400000000, R8
	MOVQ         $0x0014404410000000, R9
	XORQ         BX, BX
	SUBQ         $32, CX

next:
	CMPQ      BX, CX
	JGT       done
	VMOVDQU   (SI)(BX*1), Y0
	VPCMPEQB  Y0, Y10, Y1
	VPCMPEQB  Y0, Y11, Y2
	VPMINUB   Y0, Y12, Y3
	VPCMPEQB  Y0, Y3, Y3
	VPOR      Y1, Y2, Y1
	VPOR      Y1, Y3, Y1
	VPMOVMSKB Y1, AX
	TESTL     AX, AX
	JNZ       mark
	ADDQ      $32, BX
	JMP       next

mark: // the first bit of AX, in the block at BX
	BSFL    AX, DX
	LEAQ    (BX)(DX*1), DI
	MOVBLZX (SI)(DI*1), R10
	CMPL    R10, $0x5c
	JNE     here
	CMPL    DX, $31
	JEQ     here // what follows may be behind the text
	MOVBLZX 1(SI)(DI*1), R10
	CMPL    R10, $0x7f
	JA      here
	MOVQ    R8, R11
	CMPL    R10, $0x40
	CMOVQCC R9, R11
	BTQ     R10, R11
	JCC     here
	BTRL    DX, AX // the escape is passed
	INCL    DX
	BTRL    DX, AX
	TESTL   AX, AX
	JNZ     mark
	ADDQ    $32, BX
	JMP     next

here:
	MOVQ DI, BX

done:
	VZEROUPPER
	MOVQ BX, passed+16(FP)
	RET
