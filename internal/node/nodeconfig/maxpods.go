// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	_ "embed" // for the table of instance types
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// DefaultMaxPods is the kubelet's own default, for machines whose type says nothing.
const DefaultMaxPods = 110

// The variables of an expression.
const (
	variableENIs    = "default_enis"
	variableIPs     = "ips_per_eni"
	variableMaxPods = "max_pods"
)

const (
	maxExpression = 1024   // bytes
	maxCost       = 10_000 // of CEL's units: the cost of an evaluation at most
)

//go:embed instances.txt
var instances string

// Interfaces returns how many network interfaces an instance of a type has, and how many IPv4 addresses each of them.
// It knows the types that EKS's nodes know.
func Interfaces(instanceType string) (enis, addresses int32, ok bool) {
	if instanceType == "" {
		return 0, 0, false
	}
	for line := range strings.Lines(instances) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != instanceType {
			continue
		}
		n, err := strconv.ParseInt(words[1], 10, 32)
		m, other := strconv.ParseInt(words[2], 10, 32)
		return int32(n), int32(m), err == nil && other == nil
	}
	return 0, 0, false
}

// MaxPods is how many pods a machine takes, and where that comes from: one for each address of its network interfaces
// but their own, and two more that use the machine's own network (amazon-eks-ami,
// nodeadm/internal/kubelet/eni_max_pods.go); 110 if the type is not known. An expression computes another number from
// those. EKS takes the first number when an expression fails and only logs it; here the node is not to start with a
// number that nobody asked for.
func MaxPods(instanceType, expression string) (int32, string, error) {
	enis, addresses, known := Interfaces(instanceType)
	pods, source := int32(DefaultMaxPods), "the default: the network interfaces of the machine's type are not known"
	if instanceType != "" {
		source = fmt.Sprintf("the default: the network interfaces of %q are not known", instanceType)
	}
	variables := map[string]any{variableMaxPods: int64(pods)}
	if known {
		pods = enis*(addresses-1) + 2
		source = fmt.Sprintf("%s: %d network interfaces with %d addresses each", instanceType, enis, addresses)
		variables = map[string]any{variableENIs: int64(enis), variableIPs: int64(addresses), variableMaxPods: int64(pods)}
	}
	if expression == "" {
		return pods, source, nil
	}
	result, err := evaluate(expression, variables)
	if err != nil {
		return 0, "", fmt.Errorf("spec.kubelet.maxPodsExpression: %w", err)
	}
	return result, "spec.kubelet.maxPodsExpression over " + source, nil
}

// compile checks an expression and returns it with the names that it uses.
func compile(expression string) (cel.Program, []string, error) {
	if len(expression) > maxExpression {
		return nil, nil, fmt.Errorf("has %d bytes; at most %d are allowed", len(expression), maxExpression)
	}
	environment, err := cel.NewEnv(cel.Variable(variableENIs, cel.IntType), cel.Variable(variableIPs, cel.IntType), cel.Variable(variableMaxPods, cel.IntType))
	if err != nil {
		return nil, nil, fmt.Errorf("setting up CEL: %w", err)
	}
	checked, issues := environment.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, errors.New(celProblem(issues))
	}
	program, err := environment.Program(checked, cel.CostLimit(maxCost))
	if err != nil {
		return nil, nil, fmt.Errorf("is not CEL that can be run: %w", err)
	}
	var names []string
	for _, reference := range checked.NativeRep().ReferenceMap() {
		names = append(names, reference.Name)
	}
	switch kind := checked.OutputType(); kind.Kind() {
	// EKS converts these, and values of unknown type until it runs.
	case types.IntKind, types.UintKind, types.DoubleKind, types.StringKind, types.DynKind:
		return program, names, nil
	default:
		return nil, nil, fmt.Errorf("yields %s, not a number", kind)
	}
}

// celProblem makes one line of CEL's, which draw where in the text the problem is.
func celProblem(issues *cel.Issues) string {
	var lines []string
	for _, problem := range issues.Errors() {
		lines = append(lines, fmt.Sprintf("column %d: %s", problem.Location.Column()+1, strings.ReplaceAll(problem.Message, "\n", " ")))
	}
	return "is not valid CEL: " + strings.Join(lines, "; ") + "; there are: " + strings.Join([]string{variableENIs, variableIPs, variableMaxPods}, ", ")
}

func evaluate(expression string, variables map[string]any) (int32, error) {
	program, names, err := compile(expression)
	if err != nil {
		return 0, err
	}
	for _, name := range []string{variableENIs, variableIPs} {
		if _, ok := variables[name]; !ok && slices.Contains(names, name) {
			return 0, fmt.Errorf("uses %s, and the network interfaces of the machine's type are not known; set spec.kubelet.config.maxPods instead", name)
		}
	}
	value, _, err := program.Eval(variables)
	if err != nil {
		return 0, fmt.Errorf("cannot be evaluated: %w", err)
	}
	number, ok := value.ConvertToType(cel.IntType).Value().(int64)
	switch {
	case !ok:
		return 0, fmt.Errorf("yields %v, not a whole number", value.Value())
	case number <= 0 || number > math.MaxInt32:
		return 0, fmt.Errorf("yields %d; it must be between 1 and %d", number, math.MaxInt32)
	}
	return int32(number), nil
}
