package air

// attrNames are the names of LLVM's enumerated attributes by their number in bitcode.
var attrNames = [...]string{
	1: "align", "alwaysinline", "byval", "inlinehint", "inreg", "minsize", "naked", "nest", "noalias", "nobuiltin", "nocapture",
	12: "noduplicate", "noimplicitfloat", "noinline", "nonlazybind", "noredzone", "noreturn", "nounwind", "optsize", "readnone",
	21: "readonly", "returned", "returns_twice", "signext", "alignstack", "ssp", "sspreq", "sspstrong", "sret", "sanitize_address",
	31: "sanitize_thread", "sanitize_memory", "uwtable", "zeroext", "builtin", "cold", "optnone", "inalloca", "nonnull", "jumptable",
	41: "dereferenceable", "dereferenceable_or_null", "convergent", "safestack", "argmemonly", "swiftself", "swifterror", "norecurse",
	49: "inaccessiblememonly", "inaccessiblemem_or_argmemonly", "allocsize", "writeonly", "speculatable", "strictfp",
	55: "sanitize_hwaddress", "nocf_check", "optforfuzzing", "shadowcallstack", "speculative_load_hardening", "immarg", "willreturn",
	62: "nofree", "nosync", "sanitize_memtag", "preallocated", "nomerge", "null_pointer_is_valid", "noundef", "byref",
	70: "mustprogress", "nocallback", "hot", "noprofile", "vscale_range", "swiftasync", "nosanitize_coverage", "elementtype",
	78: "disable_sanitizer_instrumentation",
	// From here on newer than LLVM 14.
	79: "nosanitize_bounds", "allocalign", "allocptr", "allockind", "presplitcoroutine", "fn_ret_thunk_extern", "skipprofile",
	86: "memory", "nofpclass", "optdebug", "writable", "coro_only_destroy_when_complete", "dead_on_unwind", "range",
	93: "sanitize_numerical_stability", "initializes", "hybrid_patchable", "sanitize_realtime", "sanitize_realtime_blocking",
	98: "coro_elide_safe", "noext", "nodivergencesource", "sanitize_type", "captures", "dead_on_return", "sanitize_alloc_token",
	105: "nocreateundeforpoison", "denormal_fpenv", "nooutline",
}

// lastLLVM14Attr is the highest attribute number that LLVM 14 knows.
const lastLLVM14Attr = 78

var attrIDs = func() map[string]uint64 {
	ids := map[string]uint64{}
	for id, name := range attrNames {
		if name != "" {
			ids[name] = uint64(id)
		}
	}
	return ids
}()
