//===- EdgeTests.cpp - pointwise ops and gradients where numbers end ------===//
//
// Every differentiable pointwise op, compiled for the CPU and for a GPU, at
// kinks, poles, denormals, in tails and at infinities: its value and the VJP
// that the op itself builds, against the function and its slope in double. At
// kinks, and where a slope is infinite, the expectation is what PyTorch gives.
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/KernelTesting.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace pipewright::codegen::testing;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
/// What may count as zero: the kernels' exponential has no smaller results.
constexpr double kSmallest = 0x1p-125;

/// A function of one number, and its slope.
struct Unary {
  const char *name, *op;
  double (*value)(double);
  double (*slope)(double);
  /// Relative; and absolute, where a difference from 1 has no more digits.
  double tolerance = 1e-6, floor = kSmallest;
  /// A GPU's division and root take denormals for zero.
  bool flushes = false;
  /// Larger numbers are not tried: PyTorch's slopes are NaN there, too.
  double largest = kInf;
};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double geluTanh(double x) {
  return std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x));
}

/// The nearest number of a format, found among all that it has, by their codes;
/// of two that are equally near the one with the even code.
template <int digits, int bias, int codes, bool saturates,
          bool hasInfinity = false>
double fakeQuantize(double x) {
  if (std::isnan(x))
    return x;
  auto valueOf = [](int code) {
    int exponent = code >> digits, mantissa = code & ((1 << digits) - 1);
    return exponent
               ? std::ldexp((1 << digits) + mantissa, exponent - bias - digits)
               : std::ldexp(mantissa, 1 - bias - digits);
  };
  const double size = std::fabs(x);
  // `codes` is that of the number behind the last, if the format went on.
  int nearest = 0;
  for (int code = 1; code <= codes; ++code) {
    double better = std::fabs(valueOf(nearest) - size),
           distance = std::fabs(valueOf(code) - size);
    if (distance < better || (distance == better && code % 2 == 0))
      nearest = code;
  }
  double result = valueOf(nearest);
  if (nearest == codes || size > valueOf(codes))
    result = saturates     ? valueOf(codes - 1)
             : hasInfinity ? kInf
                           : std::numeric_limits<double>::quiet_NaN();
  return std::copysign(result, x);
}

#define FUNCTION(expression) [](double x) -> double { return expression; }
const Unary kUnary[] = {
    {"neg", "nn.neg %x", FUNCTION(-x), FUNCTION(x == x ? -1.0 : x)},
    {"exp", "nn.exp %x", FUNCTION(std::exp(x)), FUNCTION(std::exp(x))},
    {"expm1", "nn.expm1 %x", FUNCTION(std::expm1(x)), FUNCTION(std::exp(x))},
    {"log", "nn.log %x", FUNCTION(std::log(x)), FUNCTION(1.0 / x), 1e-6,
     kSmallest, true},
    {"log1p", "nn.log1p %x", FUNCTION(std::log1p(x)),
     FUNCTION(1.0 / (1.0 + x))},
    {"sqrt", "nn.sqrt %x", FUNCTION(std::sqrt(x)), FUNCTION(0.5 / std::sqrt(x)),
     1e-6, kSmallest, true},
    {"rsqrt", "nn.rsqrt %x", FUNCTION(1.0 / std::sqrt(x)),
     FUNCTION(-0.5 / std::pow(std::sqrt(x), 3)), 1e-6, kSmallest, true},
    {"reciprocal", "nn.reciprocal %x", FUNCTION(1.0 / x),
     FUNCTION(-1.0 / (x * x)), 1e-6, kSmallest, true},
    {"abs", "nn.abs %x", FUNCTION(std::fabs(x)),
     FUNCTION(x > 0   ? 1.0
              : x < 0 ? -1.0
                      : 0.0)},
    {"erf", "nn.erf %x", FUNCTION(std::erf(x)),
     FUNCTION(2.0 * std::numbers::inv_sqrtpi * std::exp(-x * x)), 1e-5},
    {"erfc", "nn.erfc %x", FUNCTION(std::erfc(x)),
     FUNCTION(-2.0 * std::numbers::inv_sqrtpi * std::exp(-x * x)), 2e-5},
    {"sin", "nn.sin %x", FUNCTION(std::sin(x)), FUNCTION(std::cos(x)), 1e-6,
     2e-7, false, 1e6},
    {"cos", "nn.cos %x", FUNCTION(std::cos(x)), FUNCTION(-std::sin(x)), 1e-6,
     2e-7, false, 1e6},
    {"e4m3fn", "nn.fake_quantize %x to f8E4M3FN",
     FUNCTION((fakeQuantize<3, 7, 127, false>(x))), FUNCTION(1)},
    {"e4m3fn_saturated", "nn.fake_quantize %x to f8E4M3FN saturate",
     FUNCTION((fakeQuantize<3, 7, 127, true>(x))), FUNCTION(1)},
    {"e4m3fnuz", "nn.fake_quantize %x to f8E4M3FNUZ",
     FUNCTION((fakeQuantize<3, 8, 128, false>(x))), FUNCTION(1)},
    {"e4m3fnuz_saturated", "nn.fake_quantize %x to f8E4M3FNUZ saturate",
     FUNCTION((fakeQuantize<3, 8, 128, true>(x))), FUNCTION(1)},
    {"e5m2", "nn.fake_quantize %x to f8E5M2",
     FUNCTION((fakeQuantize<2, 15, 124, false, true>(x))), FUNCTION(1)},
    {"e5m2_saturated", "nn.fake_quantize %x to f8E5M2 saturate",
     FUNCTION((fakeQuantize<2, 15, 124, true>(x))), FUNCTION(1)},
    {"e5m2fnuz", "nn.fake_quantize %x to f8E5M2FNUZ",
     FUNCTION((fakeQuantize<2, 16, 128, false>(x))), FUNCTION(1)},
    {"e5m2fnuz_saturated", "nn.fake_quantize %x to f8E5M2FNUZ saturate",
     FUNCTION((fakeQuantize<2, 16, 128, true>(x))), FUNCTION(1)},
    {"atan", "nn.atan %x", FUNCTION(std::atan(x)),
     FUNCTION(1.0 / (1.0 + x * x))},
    {"tanh", "nn.tanh %x", FUNCTION(std::tanh(x)),
     FUNCTION(1.0 - std::tanh(x) * std::tanh(x)), 1e-6, 6e-7},
    {"sigmoid", "nn.sigmoid %x", FUNCTION(sigmoid(x)),
     FUNCTION(sigmoid(x) * (1.0 - sigmoid(x))), 1e-6, 1e-7},
    {"relu", "nn.relu %x", FUNCTION(x <= 0 ? 0.0 : x),
     FUNCTION(x > 0 ? 1.0 : 0.0)},
    {"softplus", "nn.softplus %x",
     FUNCTION((x > 0 ? x : 0.0) + std::log1p(std::exp(-std::fabs(x)))),
     FUNCTION(sigmoid(x))},
    {"gelu_none", "nn.gelu %x approximate = none",
     FUNCTION(0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2))),
     FUNCTION(0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) +
              x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI)),
     1e-6, 3e-6},
    {"gelu_tanh", "nn.gelu %x approximate = tanh",
     FUNCTION(0.5 * x * (1.0 + geluTanh(x))),
     FUNCTION(0.5 * (1.0 + geluTanh(x)) +
              0.5 * x * (1.0 - geluTanh(x) * geluTanh(x)) *
                  std::sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x)),
     1e-6, 6e-6, false, 1e18},
};

/// A function of two numbers, and both of its slopes.
struct Binary {
  const char *name;
  double (*value)(double, double);
  double (*first)(double, double), (*second)(double, double);
  double tolerance = 1e-6;
};

double share(bool wins, bool equal) { return equal ? 0.5 : wins ? 1.0 : 0.0; }

#define FUNCTION2(expression)                                                  \
  [](double a, double b) -> double { return expression; }
const Binary kBinary[] = {
    {"add", FUNCTION2(a + b), FUNCTION2(1.0), FUNCTION2(1.0)},
    {"sub", FUNCTION2(a - b), FUNCTION2(1.0), FUNCTION2(-1.0)},
    {"mul", FUNCTION2(a * b), FUNCTION2(b), FUNCTION2(a)},
    {"div", FUNCTION2(a / b), FUNCTION2(1.0 / b), FUNCTION2(-a / b / b)},
    {"pow", FUNCTION2(std::pow(a, b)),
     FUNCTION2(b == 0 ? 0.0 : b * std::pow(a, b - 1)),
     FUNCTION2(a == 0 && b >= 0 ? 0.0 : std::pow(a, b) * std::log(a)), 1e-5},
    {"maximum", FUNCTION2(std::fmax(a, b)), FUNCTION2(share(a > b, a == b)),
     FUNCTION2(share(b > a, a == b))},
    {"minimum", FUNCTION2(std::fmin(a, b)), FUNCTION2(share(a < b, a == b)),
     FUNCTION2(share(b < a, a == b))},
};

const double kExponents[] = {0.0, 0.5, 1.5, 2.0, 3.0, -1.0, -2.0};

/// Adds the VJP of the op before the return: a last argument dy, and a result
/// for each operand that has a gradient.
void addGradients(func::FuncOp function) {
  Operation *end = function.front().getTerminator();
  auto op =
      dyn_cast<pipewright::nn::DifferentiableOpInterface>(end->getPrevNode());
  ASSERT_TRUE(op) << function.getName().str();
  Value result = op->getResult(0);
  SmallVector<Type> arguments(function.getArgumentTypes()),
      results(function.getResultTypes());
  arguments.push_back(result.getType());
  SmallVector<Value> resultGrads{
      function.front().addArgument(result.getType(), op.getLoc())},
      operandGrads;
  OpBuilder builder(end);
  ASSERT_TRUE(succeeded(op.buildVjp(builder, resultGrads, operandGrads)));
  for (Value gradient : operandGrads)
    if (gradient) {
      end->insertOperands(end->getNumOperands(), gradient);
      results.push_back(gradient.getType());
    }
  function.setType(builder.getFunctionType(arguments, results));
}

/// The functions of `text` with their gradients, as text.
std::string withGradients(const std::string &text) {
  MLIRContext context;
  context.loadDialect<pipewright::nn::NNDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(text, &context);
  std::string printed;
  if (!module)
    return printed;
  for (auto function : module->getOps<func::FuncOp>())
    addGradients(function);
  llvm::raw_string_ostream stream(printed);
  module->print(stream);
  return printed;
}

/// A kernel of `arguments` vectors of numbers that returns the last line.
std::string kernelText(const std::string &name, int64_t size,
                       ArrayRef<const char *> arguments,
                       const std::string &body) {
  std::string type = "tensor<" + std::to_string(size) + "xf32>";
  std::string text = "func.func @" + name + "(";
  for (size_t i = 0; i < arguments.size(); ++i)
    text += std::string(i ? ", " : "") + arguments[i] + ": " + type;
  text += ") -> " + type + " {\n" + body + "return %0 : " + type + "\n}\n";
  for (size_t at; (at = text.find("$T")) != std::string::npos;)
    text.replace(at, 2, type);
  return text;
}

std::vector<double> specialNumbers() {
  std::vector<double> numbers{0.0, -0.0, kInf, -kInf, NAN};
  for (double size :
       {1e-45, 1e-40, 2e-38, 1e-30, 1e-20, 1e-10, 1e-7, 1e-4, 1e-2, 0.3, 0.5,
        1.0, 2.0, 3.0, 3.93, 4.01, 5.5, 7.95, 8.5, 9.01, 10.0, 17.0, 20.0, 50.0,
        80.0, 86.5, 88.5, 89.5, 100.0, 1e4, 98765.4, 9e5, 1e10, 1e17, 1e30,
        3e38,
        // Halfway between floats of 8 bits, and around the largest of them.
        1.0625, 1.125, 1.1875, 1.375, 0x1p-10, 0x1.8p-9, 0x1p-11, 0x1p-17,
        0x1.8p-16, 240.0, 248.0, 247.0, 448.0, 464.0, 463.0, 57344.0, 61440.0,
        61439.0})
    for (double sign : {1.0, -1.0})
      numbers.push_back(static_cast<float>(sign * size));
  uint64_t state = 1;
  for (int i = 0; i < 200; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double random = static_cast<double>(state >> 11) / (1ull << 53);
    numbers.push_back(static_cast<float>(16.0 * random - 8.0));
  }
  return numbers;
}

void expectNumber(const std::string &what, double actual, double expected,
                  double tolerance, double floor) {
  auto rounded = static_cast<float>(expected);
  if (std::isnan(rounded))
    EXPECT_TRUE(std::isnan(actual)) << what << " is " << actual;
  else if (std::isinf(rounded))
    EXPECT_EQ(actual, rounded) << what;
  else
    EXPECT_NEAR(actual, expected, tolerance * std::fabs(expected) + floor)
        << what;
}

std::vector<Buffer> fill(func::FuncOp kernel,
                         ArrayRef<std::vector<double>> arguments) {
  std::vector<Buffer> buffers;
  for (Type type : kernel.getArgumentTypes())
    buffers.emplace_back(cast<RankedTensorType>(type));
  for (Type type : kernel.getResultTypes())
    buffers.emplace_back(cast<RankedTensorType>(type));
  // The gradient of the result is 1.
  for (unsigned b = 0; b < kernel.getNumArguments(); ++b)
    for (int64_t i = 0; i < buffers[b].size(); ++i)
      buffers[b].set(i, b < arguments.size() ? arguments[b][i] : 1.0);
  return buffers;
}

func::FuncOp findKernel(Program &program, StringRef name) {
  return program.module().lookupSymbol<func::FuncOp>(name);
}

} // namespace

TEST(Edges, UnaryOps) {
  std::vector<double> x = specialNumbers();
  std::string text;
  for (const Unary &function : kUnary)
    text += kernelText(function.name, x.size(), {"%x"},
                       std::string("%0 = ") + function.op + " : $T\n");
  Program program(withGradients(text));
  ASSERT_TRUE(program.ok);
  for (const Unary &function : kUnary)
    for (bool onGpu : {false, true}) {
      std::vector<Buffer> buffers =
          fill(findKernel(program, function.name), {x});
      if (onGpu)
        program.callOnGpu(function.name, buffers);
      else
        program.call(function.name, buffers);
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::fabs(x[i]) > function.largest ||
            (onGpu && function.flushes && std::fabs(x[i]) < 1e-37))
          continue;
        std::string at = std::string(function.name) +
                         (onGpu ? " on a GPU" : "") + " at " +
                         std::to_string(x[i]);
        expectNumber("value of " + at, buffers[2].get(i), function.value(x[i]),
                     function.tolerance, function.floor);
        if (!std::isnan(x[i]))
          expectNumber("slope of " + at, buffers[3].get(i),
                       function.slope(x[i]), function.tolerance,
                       function.floor);
      }
    }
}

/// Formats "UZ" have one zero; comparisons do not tell it from the other.
TEST(Edges, ZerosOfFloatFormats) {
  std::vector<double> x = {-0.0, 0.0, -1e-45, 1e-45, -1e-12, 1e-12};
  const std::pair<const char *, bool> formats[] = {{"f8E4M3FN", true},
                                                   {"f8E4M3FNUZ", false},
                                                   {"f8E5M2", true},
                                                   {"f8E5M2FNUZ", false}};
  std::string text;
  for (auto [format, isSigned] : formats)
    text += kernelText(format, x.size(), {"%x"},
                       std::string("%q = nn.fake_quantize %x to ") + format +
                           " : $T\n"
                           "%1 = nn.constant dense<1.0> : tensor<f32>\n"
                           "%0 = nn.div %1, %q : (tensor<f32>, $T) -> $T\n");
  Program program(withGradients(text));
  ASSERT_TRUE(program.ok);
  for (auto [format, isSigned] : formats)
    for (bool onGpu : {false, true}) {
      std::vector<Buffer> buffers = fill(findKernel(program, format), {x});
      if (onGpu)
        program.callOnGpu(format, buffers);
      else
        program.call(format, buffers);
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(buffers[2].get(i),
                  isSigned && std::signbit(x[i]) ? -kInf : kInf)
            << format << (onGpu ? " on a GPU" : "") << " of " << x[i];
    }
}

TEST(Edges, ConstantPowers) {
  std::vector<double> x = specialNumbers();
  std::string text;
  for (size_t k = 0; k < std::size(kExponents); ++k)
    text +=
        kernelText("pow" + std::to_string(k), x.size(), {"%x"},
                   "%e = nn.constant dense<" + std::to_string(kExponents[k]) +
                       "> : tensor<f32>\n"
                       "%0 = nn.pow %x, %e : ($T, tensor<f32>) -> $T\n");
  Program program(withGradients(text));
  ASSERT_TRUE(program.ok);
  for (size_t k = 0; k < std::size(kExponents); ++k)
    for (bool onGpu : {false, true}) {
      double e = kExponents[k];
      std::string name = "pow" + std::to_string(k);
      std::vector<Buffer> buffers = fill(findKernel(program, name), {x});
      if (onGpu)
        program.callOnGpu(name, buffers);
      else
        program.call(name, buffers);
      for (size_t i = 0; i < x.size(); ++i) {
        if (onGpu && std::fabs(x[i]) < 1e-37 && x[i] != 0)
          continue;
        // A root of -0 or minus infinity is not C's power of them.
        if (e != std::floor(e) && std::signbit(x[i]) &&
            (x[i] == 0 || std::isinf(x[i])))
          continue;
        std::string at = std::to_string(x[i]) + "^" + std::to_string(e) +
                         (onGpu ? " on a GPU" : "");
        expectNumber("value of " + at, buffers[2].get(i), std::pow(x[i], e),
                     1e-5, kSmallest);
        if (e != 0 && !std::isnan(x[i]))
          expectNumber("slope of " + at, buffers[3].get(i),
                       e * std::pow(x[i], e - 1), 1e-5, kSmallest);
      }
    }
}

TEST(Edges, BinaryOps) {
  std::vector<double> a, b;
  const double numbers[] = {0.0,  -0.0, 1.0, -1.0, 0.5,  2.0,  -2.0,
                            -3.0, 3.0,  1e4, 1e18, -0.5, kInf, -kInf};
  for (double first : numbers)
    for (double second : numbers) {
      a.push_back(first);
      b.push_back(second);
    }
  std::string text;
  for (const Binary &function : kBinary)
    text += kernelText(function.name, a.size(), {"%a", "%b"},
                       std::string("%0 = nn.") + function.name +
                           " %a, %b : ($T, $T) -> $T\n");
  Program program(withGradients(text));
  ASSERT_TRUE(program.ok);
  for (const Binary &function : kBinary)
    for (bool onGpu : {false, true}) {
      std::vector<Buffer> buffers =
          fill(findKernel(program, function.name), {a, b});
      if (onGpu)
        program.callOnGpu(function.name, buffers);
      else
        program.call(function.name, buffers);
      for (size_t i = 0; i < a.size(); ++i) {
        // A GPU's power is an exponential of a logarithm, without C's special
        // cases for infinities and -0.
        auto isSpecial = [](double x) {
          return std::isinf(x) || (x == 0 && std::signbit(x));
        };
        if (onGpu && function.name == StringRef("pow") &&
            (isSpecial(a[i]) || isSpecial(b[i])))
          continue;
        std::string at = std::string(function.name) + "(" +
                         std::to_string(a[i]) + ", " + std::to_string(b[i]) +
                         ")" + (onGpu ? " on a GPU" : "");
        expectNumber(at, buffers[3].get(i), function.value(a[i], b[i]),
                     function.tolerance, kSmallest);
        expectNumber("first slope of " + at, buffers[4].get(i),
                     function.first(a[i], b[i]), function.tolerance, kSmallest);
        expectNumber("second slope of " + at, buffers[5].get(i),
                     function.second(a[i], b[i]), function.tolerance,
                     kSmallest);
      }
    }
}
