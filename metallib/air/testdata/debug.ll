; A function with debug information in the form of LLVM 14.
source_filename = "debug.ll"

define i32 @f(i32 %x) !dbg !4 {
entry:
  call void @llvm.dbg.value(metadata i32 %x, metadata !7, metadata !DIExpression()), !dbg !9
  br label %loop, !dbg !9

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ], !dbg !9
  %next = add i32 %i, 1, !dbg !9, !custom !12
  call void @llvm.dbg.value(metadata !DIArgList(i32 %next, i32 %i), metadata !7, metadata !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_LLVM_arg, 1, DW_OP_plus)), !dbg !9
  %done = icmp eq i32 %next, %x, !dbg !9
  br i1 %done, label %exit, label %loop, !dbg !9, !llvm.loop !10

exit:
  ret i32 %next, !dbg !9
}

declare void @llvm.dbg.value(metadata, metadata, metadata)

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "debug.c", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 1, !"wchar_size", i32 4}
!4 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 1, type: !5, spFlags: DISPFlagDefinition, unit: !0, retainedNodes: !6)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocalVariable(name: "x", scope: !4, file: !1, line: 1, type: !8)
!8 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!9 = !DILocation(line: 2, column: 3, scope: !4)
!10 = distinct !{!10, !9, !11}
!11 = !{!"llvm.loop.mustprogress"}
!12 = !{!8, !"kept"}
