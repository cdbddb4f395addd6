; Every instruction, form of constant, attribute and linkage that LLVM 14 has and this package takes.
source_filename = "all.ll"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-f32:32:32-f64:64:64-v16:16:16-v24:32:32-v32:32:32-v48:64:64-v64:64:64-v96:128:128-v128:128:128-v192:256:256-v256:256:256-v512:512:512-v1024:1024:1024-n8:16:32"
target triple = "air64-apple-macosx14.0.0"

module asm ".globl assembly"
module asm "more \22quoted\22 assembly"

%struct.list = type { i32, %struct.list addrspace(1)*, [3 x <4 x float>] }
%struct.opaque = type opaque
%packed = type <{ i8, i32, i64 }>
%"quoted name" = type { { i8, i8 }, {} }
%0 = type { i32, %0* }
%tree = type { %leaf*, %tree* }
%leaf = type { %tree }

$dropped = comdat any
$exact = comdat exactmatch
$largest = comdat largest
$nodup = comdat nodeduplicate
$samesize = comdat samesize

@external = external global i32
@external_init = external addrspace(2) externally_initialized global i32
@weak_any = weak global i32 1, align 4
@weak_odr = weak_odr global i32 2
@linkonce = linkonce global i32 3, comdat($dropped)
@linkonce_odr = linkonce_odr hidden global i32 4, comdat($exact)
@common = common global i32 0, align 16
@internal = internal addrspace(3) global [32 x float] undef, align 4
@private = private unnamed_addr addrspace(2) constant [4 x i8] c"abc\00", align 1
@not_a_string = private constant [4 x i8] c"ab\00\FF"
@extern_weak = extern_weak global i32
@available = available_externally global i32 5
@appending = appending global [1 x i8*] [i8* bitcast (i32* @weak_any to i8*)], section "llvm.metadata"
@tls = thread_local global i32 6
@tls_dyn = thread_local(localdynamic) global i32 6
@tls_init = thread_local(initialexec) global i32 6
@tls_exec = thread_local(localexec) local_unnamed_addr global i32 6
@protected = dso_local protected global i32 7, section "air.data", comdat($largest), align 8
@dll = dllexport global i32 8, comdat($nodup)
@attributed = global i32 9, comdat($samesize) #7
@with_metadata = global i32 9, !annotation !0
@"needs \22quotes\22" = global i32 10
@self = global %struct.list* bitcast (i8* @byte to %struct.list*)
@byte = global i8 0
@unnamed = global %0 zeroinitializer
@cyclic = global %0 { i32 1, %0* @cyclic }
@tree = external global %tree

@i1s = constant <4 x i1> <i1 true, i1 false, i1 true, i1 undef>
@ints = constant [5 x i32] [i32 1, i32 -1, i32 2147483647, i32 -2147483648, i32 0]
@i64min = constant i64 -9223372036854775808
@i64max = constant i64 9223372036854775807
@i13 = constant i13 -5
@wide = constant i128 -170141183460469231731687303715884105728
@wide2 = constant i100 1234567890123456789012345
@halfs = constant <2 x half> <half 0xH3C00, half 0xH7E01>
@bfloats = constant [2 x bfloat] [bfloat 0xR3F80, bfloat 0xR7FC1]
@floats = constant [4 x float] [float 1.0, float 0x7FF0000000000000, float 0xFFF8000000000000, float -0.0]
@doubles = constant [2 x double] [double 3.141592653589793, double 0x7FF4000000000001]
@x87 = constant x86_fp80 0xK3FFF8000000000000000
@quad = constant fp128 0xL00000000000000003FFF000000000000
@structs = constant { i32, { i8, float }, [2 x i16] } { i32 7, { i8, float } { i8 1, float 2.0 }, [2 x i16] [i16 3, i16 4] }
@pack = constant %packed <{ i8 1, i32 2, i64 3 }>
@zero = constant { i32, [4 x float] } zeroinitializer
@undefs = constant { i32, float } { i32 undef, float poison }
@pointers = constant [3 x i32*] [i32* null, i32* @weak_any, i32* getelementptr inbounds ([5 x i32], [5 x i32]* @ints, i64 0, i64 2)]
@blocks = constant [2 x i8*] [i8* blockaddress(@jumps, %one), i8* blockaddress(@jumps, %two)]

@e_ptrtoint = constant i64 ptrtoint (i32* @weak_any to i64)
@e_inttoptr = constant i32* inttoptr (i64 4096 to i32*)
@e_space = constant i32* addrspacecast (i32 addrspace(2)* @external_init to i32*)
@e_gep = constant i32* getelementptr (i32, i32* @weak_any, i64 3)
@e_inrange = constant i32* getelementptr inbounds ({ [2 x i32], [2 x i32] }, { [2 x i32], [2 x i32] }* @two, i64 0, inrange i32 1, i64 1)
@two = global { [2 x i32], [2 x i32] } zeroinitializer
@e_add = constant i64 add nuw nsw (i64 ptrtoint (i32* @weak_any to i64), i64 5)
@e_sub = constant i64 sub (i64 ptrtoint (i32* @weak_any to i64), i64 ptrtoint (i32* @weak_odr to i64))
@e_udiv = constant i64 udiv exact (i64 ptrtoint (i32* @weak_any to i64), i64 2)
@e_xor = constant i64 xor (i64 ptrtoint (i32* @weak_any to i64), i64 -1)
@e_trunc = constant i32 trunc (i64 ptrtoint (i32* @weak_any to i64) to i32)
@e_icmp = constant i1 icmp eq (i32* @weak_any, i32* @extern_weak)
@e_select = constant i32 select (i1 icmp eq (i32* @weak_any, i32* @extern_weak), i32 1, i32 2)
@e_fcmp = constant i1 fcmp olt (float bitcast (i32 ptrtoint (i32* @weak_any to i32) to float), float 1.0)
@e_fadd = constant float fadd (float bitcast (i32 ptrtoint (i32* @weak_any to i32) to float), float 1.0)
@e_fneg = constant float fneg (float bitcast (i32 ptrtoint (i32* @weak_any to i32) to float))
@e_extract = constant i32 extractelement (<2 x i32> bitcast (i64 ptrtoint (i32* @weak_any to i64) to <2 x i32>), i32 1)
@e_insert = constant <2 x i32> insertelement (<2 x i32> bitcast (i64 ptrtoint (i32* @weak_any to i64) to <2 x i32>), i32 7, i64 1)
@e_shuffle = constant <2 x i32> shufflevector (<2 x i32> bitcast (i64 ptrtoint (i32* @weak_any to i64) to <2 x i32>), <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 3, i32 0>)
@e_shuffle4 = constant <4 x i32> shufflevector (<2 x i32> bitcast (i64 ptrtoint (i32* @weak_any to i64) to <2 x i32>), <2 x i32> <i32 1, i32 2>, <4 x i32> <i32 3, i32 0, i32 undef, i32 1>)

@alias = alias i32, i32* @weak_any
@alias2 = internal unnamed_addr alias i8, bitcast (i32* @weak_any to i8*)
@alias3 = weak hidden alias void (), void ()* @nothing
@ifunc = ifunc void (), void ()* ()* @resolver

declare void @declared()
declare extern_weak void @weak_declared() #0
declare !annotation !0 void @declared_meta()
declare i32 @printf(i8*, ...)
declare token @llvm.call.preallocated.setup(i32)
declare void @llvm.takes.metadata(metadata)
declare void @llvm.experimental.noalias.scope.decl(metadata)
declare float @air.simd_sum.f32(float) #2
declare i32 @personality(...) unnamed_addr #6

define void @nothing() {
  ret void
}

define void @special() {
  call void dso_local_equivalent @nothing()
  call void no_cfi @nothing()
  ret void
}

define internal void ()* @resolver() {
  ret void ()* @nothing
}

define linkonce_odr hidden fastcc i32 @linkage(i32 %x) unnamed_addr #1 section "text" comdat($dropped) align 32 gc "shadow-stack" prefix i32 1 prologue i8 -112 personality i32 (...)* @personality {
  ret i32 %x
}

define void @integers(i32 %a, i32 %b, <4 x i64> %v, i1 %c) {
entry:
  %add = add i32 %a, %b
  %add.nuw = add nuw i32 %add, %b
  %add.nsw = add nsw i32 %add.nuw, 1
  %add.both = add nuw nsw i32 %add.nsw, -1
  %sub = sub nsw i32 0, %add.both
  %mul = mul nuw i32 %sub, 3
  %udiv = udiv i32 %mul, %b
  %udiv.exact = udiv exact i32 %udiv, 8
  %sdiv = sdiv exact i32 %udiv.exact, %b
  %urem = urem i32 %sdiv, %b
  %srem = srem i32 %urem, %b
  %shl = shl nuw nsw i32 %srem, 2
  %lshr = lshr exact i32 %shl, 1
  %ashr = ashr i32 %lshr, 1
  %and = and i32 %ashr, 255
  %or = or i32 %and, %a
  %xor = xor i32 %or, -1
  %vadd = add <4 x i64> %v, <i64 1, i64 2, i64 3, i64 4>
  %trunc = trunc <4 x i64> %vadd to <4 x i8>
  %zext = zext <4 x i8> %trunc to <4 x i32>
  %sext = sext i32 %xor to i64
  %eq = icmp eq i32 %a, %b
  %ne = icmp ne i32 %a, %b
  %ugt = icmp ugt i32 %a, %b
  %uge = icmp uge i32 %a, %b
  %ult = icmp ult i32 %a, %b
  %ule = icmp ule i32 %a, %b
  %sgt = icmp sgt i32 %a, %b
  %sge = icmp sge i32 %a, %b
  %slt = icmp slt <4 x i32> %zext, zeroinitializer
  %sle = icmp sle i32 %a, %b
  %sel = select i1 %c, i32 %a, i32 %b
  %vsel = select <4 x i1> %slt, <4 x i32> %zext, <4 x i32> undef
  %fr = freeze <4 x i32> %vsel
  ret void
}

define float @floats2(float %a, float %b, half %h, double %d, bfloat %bf, <4 x float> %v) {
  %1 = fadd float %a, %b
  %2 = fsub fast float %1, %b
  %3 = fmul nnan ninf float %2, %b
  %4 = fdiv nsz arcp contract float %3, %b
  %5 = frem afn reassoc float %4, %b
  %6 = fneg float %5
  %7 = fneg nnan float %6
  %8 = fptrunc double %d to float
  %9 = fpext half %h to float
  %10 = fpext bfloat %bf to float
  %11 = fptoui float %a to i32
  %12 = fptosi float %a to i8
  %13 = uitofp i32 %11 to half
  %14 = sitofp i8 %12 to double
  %15 = fcmp oeq float %a, %b
  %16 = fcmp fast ogt float %a, %b
  %17 = fcmp oge float %a, %b
  %18 = fcmp olt float %a, %b
  %19 = fcmp ole float %a, %b
  %20 = fcmp one float %a, %b
  %21 = fcmp ord float %a, %b
  %22 = fcmp uno float %a, 0.000000e+00
  %23 = fcmp ueq float %a, %b
  %24 = fcmp ugt float %a, %b
  %25 = fcmp uge float %a, %b
  %26 = fcmp ult float %a, %b
  %27 = fcmp ule float %a, %b
  %28 = fcmp une <4 x float> %v, zeroinitializer
  %29 = fcmp true float %a, %b
  %30 = fcmp false float %a, %b
  %31 = select nnan i1 %15, float %a, float %b
  %32 = tail call fast float @air.simd_sum.f32(float %31) #2
  ret float %32
}

define void @memory(i32* %p, i32 addrspace(1)* %g, %struct.list addrspace(1)* %l, <2 x i32*> %pv, i64 %i) {
  %one = alloca i32, align 4
  %many = alloca <4 x float>, i32 7, align 64
  %ina = alloca inalloca i8, align 1
  %big = alloca [16 x i8], i64 %i, align 1073741824
  %load = load i32, i32* %p, align 4
  %vload = load volatile i32, i32 addrspace(1)* %g, align 1, !nontemporal !1
  %aload = load atomic i32, i32* %p unordered, align 4
  %aload2 = load atomic volatile i32, i32* %p syncscope("singlethread") seq_cst, align 8
  %aload3 = load atomic i32, i32* %p syncscope("agent") acquire, align 4
  store i32 %load, i32* %p, align 4
  store volatile i32 5, i32 addrspace(1)* %g, align 4
  store atomic i32 %load, i32* %p monotonic, align 4
  store atomic i32 %load, i32* %p release, align 4
  %gep = getelementptr i32, i32* %p, i64 %i
  %gep2 = getelementptr inbounds %struct.list, %struct.list addrspace(1)* %l, i64 %i, i32 2, i64 1, i64 3
  %gep3 = getelementptr i32, <2 x i32*> %pv, <2 x i64> <i64 1, i64 2>
  %gep4 = getelementptr %packed, %packed* null, <2 x i32> zeroinitializer, <2 x i32> <i32 1, i32 1>
  fence acquire
  fence syncscope("singlethread") acq_rel
  %cx = cmpxchg i32* %p, i32 1, i32 %load acq_rel monotonic, align 4
  %cx2 = cmpxchg weak volatile i32* %p, i32 1, i32 %load syncscope("agent") seq_cst acquire, align 8
  %rmw.xchg = atomicrmw xchg i32* %p, i32 1 monotonic, align 4
  %rmw.add = atomicrmw add i32* %p, i32 1 acquire, align 4
  %rmw.sub = atomicrmw volatile sub i32* %p, i32 1 release, align 4
  %rmw.and = atomicrmw and i32* %p, i32 1 acq_rel, align 4
  %rmw.nand = atomicrmw nand i32* %p, i32 1 seq_cst, align 4
  %rmw.or = atomicrmw or i32* %p, i32 1 syncscope("agent") seq_cst, align 4
  %rmw.xor = atomicrmw xor i32* %p, i32 1 monotonic, align 4
  %rmw.max = atomicrmw max i32* %p, i32 1 monotonic, align 4
  %rmw.min = atomicrmw min i32* %p, i32 1 monotonic, align 4
  %rmw.umax = atomicrmw umax i32* %p, i32 1 monotonic, align 4
  %rmw.umin = atomicrmw umin i32* %p, i32 1 monotonic, align 4
  %fp = bitcast i32* %p to float*
  %rmw.fadd = atomicrmw fadd float* %fp, float 1.0 monotonic, align 4
  %rmw.fsub = atomicrmw fsub float* %fp, float 1.0 monotonic, align 4
  %rmw.fx = atomicrmw xchg float* %fp, float 1.0 monotonic, align 4
  %int = ptrtoint i32* %p to i64
  %ptr = inttoptr i64 %int to i8*
  %cast = addrspacecast i32 addrspace(1)* %g to i32*
  ret void
}

define <4 x float> @vectors(<4 x float> %v, i32 %i, { i32, [2 x float] } %agg, <2 x i8> %w) {
  %e = extractelement <4 x float> %v, i64 0
  %e2 = extractelement <4 x float> %v, i32 %i
  %n = insertelement <4 x float> %v, float %e, i32 %i
  %s = shufflevector <4 x float> %v, <4 x float> %n, <4 x i32> <i32 0, i32 5, i32 undef, i32 3>
  %s2 = shufflevector <2 x i8> %w, <2 x i8> poison, <8 x i32> zeroinitializer
  %x = extractvalue { i32, [2 x float] } %agg, 1, 0
  %y = insertvalue { i32, [2 x float] } %agg, float %x, 1, 1
  %z = insertvalue { i32, [2 x float] } undef, i32 3, 0
  ret <4 x float> %s
}

define i32 @control(i32 %n, i1 %c, i64 %w) {
entry:
  br i1 %c, label %loop, label %exit

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ], [ %later, %odd ]
  %f = phi fast float [ 0.0, %entry ], [ 1.0, %loop ], [ 2.0, %odd ]
  %next = add i32 %i, 1
  switch i32 %next, label %loop [
    i32 1, label %exit
    i32 -7, label %odd
    i32 9, label %dead
  ], !prof !2

odd:
  %later = mul i32 %next, %n
  switch i64 %w, label %loop [
    i64 -9223372036854775808, label %exit
  ]

dead:
  unreachable

exit:
  %r = phi i32 [ %n, %entry ], [ %next, %loop ], [ %later, %odd ]
  ret i32 %r
}

define i8* @returns(i8* returned %p) {
  ret i8* %p
}

define void @jumps(i8* %to) {
  indirectbr i8* %to, [label %one, label %two]

one:
  br label %two

two:
  ret void
}

define void @forward(i1 %c) {
entry:
  br label %second

first:
  %cast = bitcast i32 %def to float
  %bin = add i32 %def, %def
  %neg = fneg float %deff
  %cmp = icmp eq i32 %def, 0
  %load = load i32, i32* %defp, align 4
  store i32 %def, i32* %defp, align 4
  %gep = getelementptr i32, i32* %defp, i32 %def
  %ext = extractelement <2 x i32> %defv, i32 %def
  %ins = insertelement <2 x i32> %defv, i32 %def, i32 %def
  %sel = select i1 %cmp, i32 %def, i32 %bin
  call void (i32, ...) @variadic(i32 %def, float %deff, i32* %defp)
  call void %deffn()
  %fr = freeze i32 %def
  ret void

second:
  %def = load i32, i32* @weak_any, align 4
  %deff = load float, float* bitcast (i32* @weak_any to float*), align 4
  %defp = getelementptr i32, i32* @weak_any, i32 %def
  %defv = insertelement <2 x i32> zeroinitializer, i32 %def, i32 0
  %deffn = load void ()*, void ()** null, align 8
  br i1 %c, label %first, label %third

third:
  ret void
}

declare i8* @allocate(i32, i64) #8
declare void @llvm.typed(i8*)
declare void @variadic(i32, ...)

define void @calls(i8* sret(i8) %sret, i8* %p, void (i32)* %f, i8* swiftself %self, i8** swifterror %err, i8* byval(i8) align 8 %by) #3 {
  call void @nothing() #5
  tail call void @nothing() #4
  notail call void @nothing()
  call fastcc void @nothing()
  call cc 75 void @nothing()
  call void %f(i32 7)
  %r = call i32 (i8*, ...) @printf(i8* %p, i32 1, double 2.0, i8* null)
  %s = call signext i32 (i8*, ...) @printf(i8* noalias nocapture nonnull dereferenceable(4) %p)
  call void @nothing() [ "deopt"(i32 1, i8* %p), "custom"() ]
  %t = call token @llvm.call.preallocated.setup(i32 1)
  call void asm sideeffect "nop", "~{memory}"()
  %a = call i32 asm alignstack inteldialect unwind "mov $0, $1", "=r,r"(i32 5)
  call void @llvm.takes.metadata(metadata !3)
  call void @llvm.takes.metadata(metadata i32 5)
  call void @llvm.takes.metadata(metadata i8* %p)
  call void @llvm.takes.metadata(metadata !"text")
  call void @llvm.takes.metadata(metadata i32* @weak_any)
  call void @llvm.experimental.noalias.scope.decl(metadata !4)
  %va = va_arg i8* %p, i32
  %ib = call i8 bitcast (void ()* @nothing to i8 ()*)()
  call void @llvm.typed(i8* elementtype(i8) %p)
  musttail call void @calls(i8* sret(i8) %sret, i8* %p, void (i32)* %f, i8* swiftself %self, i8** swifterror %err, i8* byval(i8) align 8 %by)
  ret void
}

define void @attached() !annotation !0 !custom.kind !3 {
  ret void, !custom.other !{!"inline"}
}

define zeroext i8 @parameters(i8 zeroext %a, i8 signext %b, i8* inreg %c, i8* noalias %d, i8* nocapture %e, i8* nofree %f, i8* nest %g, i8* %h, i8* nonnull %i, i8* dereferenceable(8) %j, i8* dereferenceable_or_null(16) %k, i8* readonly %l, i8* writeonly %m, i8* readnone %n, i8* noundef align 16 "air-buffer-no-alias" %o, i8* byref(i8) %p, i8* swiftasync %q, i32* preallocated(i32) %s, i32* %t) {
  ret i8 %a
}

attributes #0 = { alwaysinline argmemonly cold convergent disable_sanitizer_instrumentation hot inaccessiblememonly inlinehint minsize mustprogress nobuiltin nocallback nocf_check noduplicate nofree noimplicitfloat nomerge noprofile norecurse noredzone noreturn nosanitize_coverage nosync nounwind nonlazybind null_pointer_is_valid optforfuzzing optsize returns_twice safestack sanitize_address sanitize_hwaddress sanitize_memtag sanitize_memory sanitize_thread shadowcallstack speculatable speculative_load_hardening ssp strictfp uwtable willreturn "string" "key"="value" "key2"="with \22quotes\22" }
attributes #1 = { noinline optnone naked sspreq }
attributes #2 = { convergent nounwind readnone willreturn }
attributes #3 = { sspstrong inaccessiblemem_or_argmemonly alignstack=16  vscale_range(1,16) }
attributes #4 = { nounwind readonly }
attributes #5 = { builtin writeonly }
attributes #8 = { allocsize(0,1) }
attributes #6 = { jumptable }
attributes #7 = { "global"="attribute" }

!named = !{!0, !3, !6}
!air.version = !{!5}
!empty = !{}

!0 = !{!"annotated"}
!1 = !{i32 1}
!2 = !{!"branch_weights", i32 1, i32 2, i32 3, i32 4}
!3 = !{null, !"text", i64 7, float 1.5, i32* @weak_any, void (i32)* bitcast (void ()* @nothing to void (i32)*), !4, !6}
!4 = !{!7}
!5 = !{i32 2, i32 6, i32 0}
!6 = distinct !{!6, !0, <2 x i32> <i32 1, i32 2>}
!7 = distinct !{!7, !8}
!8 = distinct !{!8}
