; What LLVM 14 does not have: opaque pointers, newer flags, attributes and constants.
source_filename = "new.ll"
target datalayout = "e-p:64:64-A5"
target triple = "spirv64-unknown-unknown"

%pair = type { i32, float }

@g = addrspace(1) global %pair { i32 1, float 2.0 }
@ranged = constant ptr addrspace(1) getelementptr inrange(0, 4) (i8, ptr addrspace(1) @g, i64 4)
@nuw = constant ptr addrspace(1) getelementptr nuw (i8, ptr addrspace(1) @g, i64 4)
@next = global ptr @f

define range(i32 0, 5) i32 @f(i32 %x, float %y, ptr addrspace(1) captures(none) initializes((0, 4)) %p, <4 x float> nofpclass(nan) %v) #0 {
entry:
  %a = alloca i32, align 4, addrspace(5)
  %zext = zext nneg i32 %x to i64
  %uitofp = uitofp nneg i32 %x to float
  %or = or disjoint i32 %x, 1
  %trunc = trunc nuw nsw i64 %zext to i16
  %icmp = icmp samesign ult i32 %x, %or
  %gep = getelementptr nusw nuw %pair, ptr addrspace(1) %p, i64 %zext, i32 1
  %gep2 = getelementptr inbounds nuw i8, ptr addrspace(1) %gep, i64 4
  %ext = fpext fast float %y to double
  %fptrunc = fptrunc nnan double %ext to float
  %sel = select nnan i1 %icmp, float %y, float %fptrunc
  %load = load float, ptr addrspace(1) %gep2, align 4
  store float %sel, ptr addrspace(1) %gep, align 4
  %rmw = atomicrmw fmax ptr addrspace(1) %gep, float %y syncscope("agent") monotonic, align 4
  %rmw2 = atomicrmw uinc_wrap ptr addrspace(1) %p, i32 7 seq_cst, align 4
  %call = call nnan float @llvm.minimum.f32(float %y, float %load) #1
  %loop = icmp eq i32 %x, 0
  br i1 %loop, label %exit, label %entry2

entry2:
  %phi = phi i32 [ %x, %entry ], [ %dec, %entry2 ]
  %dec = sub i32 %phi, 1
  %done = icmp eq i32 %dec, 0
  br i1 %done, label %exit, label %entry2

exit:
  ret i32 %x
}

declare float @llvm.minimum.f32(float, float) #1

define void @debugged() !dbg !3 {
  ret void, !dbg !6
}

attributes #0 = { nounwind memory(argmem: readwrite) nosanitize_bounds uwtable(sync) "frame-pointer"="all" }
attributes #1 = { memory(none) nocreateundeforpoison }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "new.c", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "debugged", scope: !1, file: !1, line: 1, type: !4, spFlags: DISPFlagDefinition, unit: !0)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 2, column: 3, scope: !3)
