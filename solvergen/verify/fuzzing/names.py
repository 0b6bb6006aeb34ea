"""Names that a spec may give, the awkward ones first of all: words of C, CUDA, Python, NumPy, SymPy and the
generated code's own, names that differ by little, and ones that the compiler makes up itself.
"""

from __future__ import annotations

from hypothesis import strategies as st

from solvergen.spec.names import (
    class_name_of,
    problem_with_argument,
    problem_with_class_name,
    problem_with_name,
    problem_with_spec_name,
)

_ORDINARY = "lr m v beta1 beta2 eps wd rate g d u r s x y z k w decay momentum nesterov amsgrad warm"
_SHORT = "a b c e f h i j l n o p q N E I S O Q M V T D x0 x1 y0 j1 m_ m__ m1 a_b A"
_C = (
    "auto bool break case char const default do double enum extern float goto inline int long register "
    "restrict short signed sizeof static struct switch typedef union unsigned void volatile asm typeof "
    "linux unix i386 errno NULL NAN INFINITY EOF stdin main printf malloc memcpy size_t int64_t uint32_t "
    "int8_t fma fmaf sqrtf fabs fabsf floor_ powf expf HUGE_VAL M_PI assert alignas constexpr nullptr omp"
)
_CPP = (
    "new delete this class_ template typename operator private public virtual friend using namespace "
    "explicit export mutable throw catch decltype noexcept and_eq bitand bitor compl not_eq or_eq xor"
)
_CUDA = (
    "threadIdx blockIdx blockDim gridDim warpSize half bfloat16 float4 double2 uint4 dim3 clock printf "
    "tid idx row col lane chunk chunks offset index count size length data tensor pointer table tables "
    "next previous begin end first last value values result results scale source target block thread"
)
_PYTHON = (
    "self cls match type list dict set tuple str len range object print id map filter iter any zip round "
    "super property names state step steps params options real rounded np numpy math array asarray "
    "maximum minimum divide power square copysign Any tuple_ update scalars row_ active initial float64 "
    "float32 errstate annotations reference schema constraints_ DEFINITION Initial TYPE_CHECKING"
)
_SYMPY = "beta gamma zeta lambda_ Symbol Rational pi oo zoo nan nan_ inf Add Mul Pow Lambda Eq Ne re im"
_MADE_UP = (
    "param_new grad_next m_new m_next one_minus_beta1 lr_over_t beta1_pow_t minus_grad grad_squared "
    "grad_times_grad shared shared_2 constant n2 param_ grad_ t_ half_ whole product step_number sqrt_v "
    "abs_grad m_or_v not_warm true_ false_ yes no on off y_ null_ x_new x_new_2 param_new_2 sum_ log_ exp_"
)

AWKWARD = " ".join((_ORDINARY, _SHORT, _C, _CPP, _CUDA, _PYTHON, _SYMPY, _MADE_UP))
_ANY = tuple(name for name in dict.fromkeys(AWKWARD.split()) if problem_with_name(name) is None)
_ARGUMENTS = tuple(name for name in _ANY if problem_with_argument(name) is None)

_FIRST = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_drawn = st.tuples(
    st.sampled_from(_FIRST), st.text(_FIRST + "0123456789_", max_size=9), st.sampled_from((0, 0, 0, 0, 64))
).map(lambda parts: (parts[0] + parts[1]).ljust(parts[2], "x"))

symbols = st.one_of(
    st.sampled_from(_ANY), st.sampled_from(_ANY), _drawn.filter(lambda n: problem_with_name(n) is None)
)
"""Names of state and temporaries."""

arguments = st.one_of(
    st.sampled_from(_ARGUMENTS),
    st.sampled_from(_ARGUMENTS),
    _drawn.filter(lambda n: problem_with_name(n) is None and problem_with_argument(n) is None),
)
"""Names of hyperparameters and options."""


def _makes_a_class(name: str) -> bool:
    return problem_with_spec_name(name) is None and problem_with_class_name(class_name_of(name)) is None


_MODULES = (
    "rule adam a x9 np numpy math os sys typing types test tests solvergen runtime optimizers builtins main "
    "annotations schema reference scalars kernel any state update definition optimizer package numpy_ a_b_c "
    "a__b x_ functions init functions_ numpy_random dataclasses collections __x self match type"
)
specs = st.one_of(
    st.sampled_from([name for name in _MODULES.split() if _makes_a_class(name)]),
    st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=12).filter(_makes_a_class),
)
"""Names of specs."""
