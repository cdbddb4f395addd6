package air

import "fmt"

// The ids of LLVM's blocks.
const (
	blockInfoBlock          = 0
	moduleBlock             = 8
	paramAttrBlock          = 9
	paramAttrGroupBlock     = 10
	constantsBlock          = 11
	functionBlock           = 12
	identificationBlock     = 13
	valueSymtabBlock        = 14
	metadataBlock           = 15
	metadataAttachmentBlock = 16
	typeBlock               = 17
	useListBlock            = 18
	modulePathBlock         = 19
	summaryBlock            = 20
	operandBundleTagsBlock  = 21
	metadataKindBlock       = 22
	strtabBlock             = 23
	fullLTOSummaryBlock     = 24
	symtabBlock             = 25
	syncScopeNamesBlock     = 26

	// topLevel stands for what is outside of all blocks.
	topLevel = ^uint64(0)
)

var blockNames = map[uint64]string{
	blockInfoBlock: "BLOCKINFO", moduleBlock: "MODULE", paramAttrBlock: "PARAMATTR", paramAttrGroupBlock: "PARAMATTR_GROUP",
	constantsBlock: "CONSTANTS", functionBlock: "FUNCTION", identificationBlock: "IDENTIFICATION", valueSymtabBlock: "VALUE_SYMTAB",
	metadataBlock: "METADATA", metadataAttachmentBlock: "METADATA_ATTACHMENT", typeBlock: "TYPE_TABLE_NEW", useListBlock: "USELIST",
	modulePathBlock: "MODULE_STRTAB", summaryBlock: "GLOBALVAL_SUMMARY", operandBundleTagsBlock: "OPERAND_BUNDLE_TAGS",
	metadataKindBlock: "METADATA_KIND", strtabBlock: "STRTAB", fullLTOSummaryBlock: "FULL_LTO_GLOBALVAL_SUMMARY",
	symtabBlock: "SYMTAB", syncScopeNamesBlock: "SYNC_SCOPE_NAMES", topLevel: "top level",
}

func blockName(id uint64) string {
	if s := blockNames[id]; s != "" {
		return s
	}
	return fmt.Sprintf("block %d", id)
}

// The records of the module block.
const (
	modVersion     = 1
	modTriple      = 2
	modDataLayout  = 3
	modAsm         = 4
	modSectionName = 5
	modDepLib      = 6
	modGlobalVar   = 7
	modFunction    = 8
	modAliasOld    = 9
	modGCName      = 11
	modComdat      = 12
	modVSTOffset   = 13
	modAlias       = 14
	modMDUnused    = 15
	modSourceName  = 16
	modHash        = 17
	modIFunc       = 18
)

// The records of the type table.
const (
	typNumEntry      = 1
	typVoid          = 2
	typFloat         = 3
	typDouble        = 4
	typLabel         = 5
	typOpaque        = 6
	typInteger       = 7
	typPointer       = 8
	typFunctionOld   = 9
	typHalf          = 10
	typArray         = 11
	typVector        = 12
	typX86FP80       = 13
	typFP128         = 14
	typPPCFP128      = 15
	typMetadata      = 16
	typX86MMX        = 17
	typStructAnon    = 18
	typStructName    = 19
	typStructNamed   = 20
	typFunction      = 21
	typToken         = 22
	typBFloat        = 23
	typX86AMX        = 24
	typOpaquePointer = 25
	typTarget        = 26
)

// The records of constants blocks.
const (
	cstSetType       = 1
	cstNull          = 2
	cstUndef         = 3
	cstInteger       = 4
	cstWideInteger   = 5
	cstFloat         = 6
	cstAggregate     = 7
	cstString        = 8
	cstCString       = 9
	cstBinOp         = 10
	cstCast          = 11
	cstGEPOld        = 12
	cstSelect        = 13
	cstExtractElt    = 14
	cstInsertElt     = 15
	cstShuffleVec    = 16
	cstCmp           = 17
	cstInlineAsmOld  = 18
	cstShuffleVecEx  = 19
	cstInBoundsGEP   = 20
	cstBlockAddress  = 21
	cstData          = 22
	cstInlineAsmOld2 = 23
	cstGEPInRangeOld = 24
	cstUnOp          = 25
	cstPoison        = 26
	cstDSOLocalEquiv = 27
	cstInlineAsmOld3 = 28
	cstNoCFI         = 29
	cstInlineAsm     = 30
	cstGEPInRange    = 31
	cstGEP           = 32
	cstPtrAuth       = 33
)

// The records of function blocks.
const (
	fnDeclareBlocks    = 1
	fnBinOp            = 2
	fnCast             = 3
	fnGEPOld           = 4
	fnSelectOld        = 5
	fnExtractElt       = 6
	fnInsertElt        = 7
	fnShuffleVec       = 8
	fnCmp              = 9
	fnRet              = 10
	fnBr               = 11
	fnSwitch           = 12
	fnInvoke           = 13
	fnUnreachable      = 15
	fnPhi              = 16
	fnAlloca           = 19
	fnLoad             = 20
	fnVAArg            = 23
	fnStoreOld         = 24
	fnExtractVal       = 26
	fnInsertVal        = 27
	fnCmp2             = 28
	fnVSelect          = 29
	fnInBoundsGEPOld   = 30
	fnIndirectBr       = 31
	fnDebugLocAgain    = 33
	fnCall             = 34
	fnDebugLoc         = 35
	fnFence            = 36
	fnCmpXchgOld       = 37
	fnAtomicRMWOld     = 38
	fnResume           = 39
	fnLandingPadOld    = 40
	fnLoadAtomic       = 41
	fnStoreAtomicOld   = 42
	fnGEP              = 43
	fnStore            = 44
	fnStoreAtomic      = 45
	fnCmpXchg          = 46
	fnLandingPad       = 47
	fnCleanupRet       = 48
	fnCatchRet         = 49
	fnCatchPad         = 50
	fnCleanupPad       = 51
	fnCatchSwitch      = 52
	fnOperandBundle    = 55
	fnUnOp             = 56
	fnCallBr           = 57
	fnFreeze           = 58
	fnAtomicRMW        = 59
	fnBlockAddrUsers   = 60
	fnDebugRecordFirst = 61
	fnDebugRecordLast  = 66
)

// fnNames names the records of function blocks that have no meaning here, for messages and Module.Skipped.
var fnNames = map[uint64]string{
	fnInvoke: "invoke", fnResume: "resume", fnLandingPadOld: "landingpad", fnLandingPad: "landingpad", fnCleanupRet: "cleanupret",
	fnCatchRet: "catchret", fnCatchPad: "catchpad", fnCleanupPad: "cleanuppad", fnCatchSwitch: "catchswitch", fnCallBr: "callbr",
	fnDebugLoc: "DEBUG_LOC", fnDebugLocAgain: "DEBUG_LOC_AGAIN", fnBlockAddrUsers: "BLOCKADDR_USERS", 61: "DEBUG_RECORD_VALUE",
	62: "DEBUG_RECORD_DECLARE", 63: "DEBUG_RECORD_ASSIGN", 64: "DEBUG_RECORD_VALUE_SIMPLE", 65: "DEBUG_RECORD_LABEL",
	66: "DEBUG_RECORD_DECLARE_VALUE",
}

// The records of metadata blocks.
const (
	mdStringOld        = 1
	mdValue            = 2
	mdNode             = 3
	mdName             = 4
	mdDistinctNode     = 5
	mdKind             = 6
	mdLocation         = 7
	mdOldNode          = 8
	mdOldFnNode        = 9
	mdNamedNode        = 10
	mdAttachment       = 11
	mdGenericDebug     = 12
	mdMacroFile        = 34
	mdStrings          = 35
	mdGlobalDeclAttach = 36
	mdGlobalVarExpr    = 37
	mdIndexOffset      = 38
	mdIndex            = 39
	mdLabel            = 40
	mdFixedPointType   = 49
)

// The records of symbol tables.
const (
	vstEntry   = 1
	vstBBEntry = 2
	vstFnEntry = 3
)

// The kinds of casts as recorded.
var castOps = [...]Op{OpTrunc, OpZExt, OpSExt, OpFPToUI, OpFPToSI, OpUIToFP, OpSIToFP, OpFPTrunc, OpFPExt, OpPtrToInt, OpIntToPtr,
	OpBitCast, OpAddrSpaceCast}

// The kinds of arithmetic as recorded, for integers and for floating-point numbers.
var (
	intBinOps   = [...]Op{OpAdd, OpSub, OpMul, OpUDiv, OpSDiv, OpURem, OpSRem, OpShl, OpLShr, OpAShr, OpAnd, OpOr, OpXor}
	floatBinOps = [...]Op{OpFAdd, OpFSub, OpFMul, OpInvalid, OpFDiv, OpInvalid, OpFRem}
)

// The bits of a call's calling-convention field.
const (
	callTail         = 1 << 0
	callMustTail     = 1 << 14
	callExplicitType = 1 << 15
	callNoTail       = 1 << 16
	callFMF          = 1 << 17
)

// fastFlags are the fast-math flags by their bit in bitcode; bit 0 is the old "everything".
var fastFlags = [8]Flags{Fast, NNaN, NInf, NSZ, ARCP, Contract, AFN, Reassoc}

func decodeFast(bits uint64) Flags {
	var f Flags
	for i, flag := range fastFlags {
		if bits>>i&1 != 0 {
			f |= flag
		}
	}
	return f
}
