"""Compiling sooner: a part is compiled with the kernels that call it, and not on its own as well.

numba optimises every function and makes machine code of it before it links it into those that call it, where both
are done again.  For what only kernels call, the first time is in vain: a part is kept as LLVM's code, optimised no
further than functions are one by one, and linked.  numba offers a way to this, a compiler of one's own
(`pipeline_class`).  What that is made of may differ in a numba to come; then parts are compiled as all else is.
"""

from __future__ import annotations

import gc
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class KernelCompiler(Compiler):
    """numba's own, without a look for garbage at every turn: there is little of it, and much to look at."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function, and the parts it calls."""
        paused = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if paused:
                gc.enable()


class PartLibrary(JITCodeLibrary):
    """Code of a part: linked with what it calls, but not optimised with it, nor made machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """The last of numba's passes, with such a library for its result."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a part.  What stands for it in Python cannot be called from there."""
        try:
            self._lower(state)
        except (AttributeError, TypeError):  # a numba of another make
            state.library, state.flags.no_compile = None, False
            super().run_pass(state)
        return True

    def _lower(self, state: Any) -> None:
        context, library = state.targetctx, PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library, state.flags.no_compile = library, True
        super().run_pass(state)
        library.finalize()
        lowered = state["cr"]
        name, module = lowered.fndesc.qualname.split(".")[-1], lowered.fndesc.lookup_module()
        stub = _dynfunc.make_function(module, name, "", 0, lowered.env, (library,))
        context.insert_user_function(stub, lowered.fndesc, [library])
        state.reload_init.extend(getattr(library, "_reload_init", ()))  # 0.61 has none
        state["cr"] = lowered._replace(cfunc=stub)


class PartCompiler(CompilerBase):
    """numba's passes, of which the last is `PartLowering`."""

    def define_pipelines(self) -> list[Any]:
        """One way to compile."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(PartLowering if step is NativeLowering else step, what) for step, what in passes.passes]
        passes.finalize()
        return [passes]
