#include "textflag.h"

// The byte of a backslash, and that of a u.
DATA signs<>+0(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA signs<>+8(SB)/8, $0x7575757575757575
GLOBL signs<>(SB), RODATA|NOPTR, $16

// func pairs(in, other *byte, n int, first, firstCase, second, secondCase uint64) (passed int, at uint32)
TEXT ·pairs(SB), NOSPLIT, $0-68
	MOVQ         in+0(FP), SI
	MOVQ         other+8(FP), DI
	MOVQ         n+16(FP), CX
	VPBROADCASTQ first+24(FP), Y10
	VPBROADCASTQ firstCase+32(FP), Y11
	VPBROADCASTQ second+40(FP), Y12
	VPBROADCASTQ secondCase+48(FP), Y13
	VPBROADCASTQ signs<>+0(SB), Y14
	VPBROADCASTQ signs<>+8(SB), Y15
	XORQ         BX, BX
	XORQ         AX, AX
	SHLQ         $5, CX
	JZ           done

loop:
	VMOVDQU   (SI)(BX*1), Y0
	VPOR      Y0, Y11, Y1
	VPCMPEQB  Y1, Y10, Y1
	VPOR      (DI)(BX*1), Y13, Y2
	VPCMPEQB  Y2, Y12, Y2
	VPAND     Y1, Y2, Y1
	VPCMPEQB  Y0, Y14, Y3
	VPCMPEQB  1(SI)(BX*1), Y15, Y4
	VPAND     Y3, Y4, Y3
	VPOR      Y1, Y3, Y1
	VPMOVMSKB Y1, AX
	TESTL     AX, AX
	JNZ       done
	ADDQ      $32, BX
	CMPQ      BX, CX
	JB        loop

done:
	VZEROUPPER
	MOVQ BX, passed+56(FP)
	MOVL AX, at+64(FP)
	RET
