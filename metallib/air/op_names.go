package air

// opNames are LLVM's names of the operations.
var opNames = [opCount]string{
	OpInvalid: "invalid", OpRet: "ret", OpBr: "br", OpSwitch: "switch", OpIndirectBr: "indirectbr", OpUnreachable: "unreachable",
	OpAdd: "add", OpSub: "sub", OpMul: "mul", OpUDiv: "udiv", OpSDiv: "sdiv", OpURem: "urem", OpSRem: "srem", OpShl: "shl",
	OpLShr: "lshr", OpAShr: "ashr", OpAnd: "and", OpOr: "or", OpXor: "xor", OpFNeg: "fneg", OpFAdd: "fadd", OpFSub: "fsub",
	OpFMul: "fmul", OpFDiv: "fdiv", OpFRem: "frem", OpTrunc: "trunc", OpZExt: "zext", OpSExt: "sext", OpFPTrunc: "fptrunc",
	OpFPExt: "fpext", OpFPToUI: "fptoui", OpFPToSI: "fptosi", OpUIToFP: "uitofp", OpSIToFP: "sitofp", OpPtrToInt: "ptrtoint",
	OpIntToPtr: "inttoptr", OpBitCast: "bitcast", OpAddrSpaceCast: "addrspacecast", OpICmp: "icmp", OpFCmp: "fcmp",
	OpAlloca: "alloca", OpLoad: "load", OpStore: "store", OpGetElementPtr: "getelementptr", OpFence: "fence", OpCmpXchg: "cmpxchg",
	OpAtomicRMW: "atomicrmw", OpExtractElement: "extractelement", OpInsertElement: "insertelement",
	OpShuffleVector: "shufflevector", OpExtractValue: "extractvalue", OpInsertValue: "insertvalue", OpPhi: "phi",
	OpSelect: "select", OpCall: "call", OpFreeze: "freeze", OpVAArg: "va_arg", OpUnknown: "unknown",
}

// String is LLVM's name of the operation.
func (op Op) String() string {
	if op < opCount {
		return opNames[op]
	}
	return "invalid"
}

var predNames = map[Pred]string{FCmpFalse: "false", FCmpOEQ: "oeq", FCmpOGT: "ogt", FCmpOGE: "oge", FCmpOLT: "olt", FCmpOLE: "ole",
	FCmpONE: "one", FCmpORD: "ord", FCmpUNO: "uno", FCmpUEQ: "ueq", FCmpUGT: "ugt", FCmpUGE: "uge", FCmpULT: "ult", FCmpULE: "ule",
	FCmpUNE: "une", FCmpTrue: "true", ICmpEQ: "eq", ICmpNE: "ne", ICmpUGT: "ugt", ICmpUGE: "uge", ICmpULT: "ult", ICmpULE: "ule",
	ICmpSGT: "sgt", ICmpSGE: "sge", ICmpSLT: "slt", ICmpSLE: "sle"}

// String is LLVM's name of the predicate.
func (p Pred) String() string { return predNames[p] }
