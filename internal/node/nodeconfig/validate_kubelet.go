// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The apiVersion and kind of the kubelet's configuration, should it have them itself.
const (
	KubeletAPIVersion = "kubelet.config.k8s.io/v1beta1"
	KubeletKind       = "KubeletConfiguration"
)

func (c Containerd) validate(path *field.Path) field.ErrorList {
	if _, err := readTOML(c.Config); err != nil {
		return field.ErrorList{field.Invalid(path.Child("config"), hidden, err.Error())}
	}
	if len(c.BaseRuntimeSpec) == 0 {
		return nil
	}
	return runtimeSpecFields().mistyped(path.Child("baseRuntimeSpec"), c.BaseRuntimeSpec)
}

func (k Kubelet) validate(path *field.Path) field.ErrorList {
	problems := validateKubeletConfig(path.Child("config"), k.Config)
	for i, flag := range k.Flags {
		if problem := flagProblem(k.Flags, i); problem != "" {
			problems = append(problems, field.Invalid(path.Child("flags").Index(i), WithoutSecrets(flag), problem))
		}
	}
	if k.MaxPodsExpression != "" {
		if _, _, err := compile(k.MaxPodsExpression); err != nil {
			problems = append(problems, field.Invalid(path.Child("maxPodsExpression"), k.MaxPodsExpression, err.Error()))
		}
	}
	return problems
}

// flagProblem says why an element is not one argument. On EKS's nodes they go through a shell-like splitting at blanks
// (systemd's $NODEADM_KUBELET_ARGS), so "--v 4" may work there; here each element is one argument.
func flagProblem(flags []string, i int) string {
	flag := flags[i]
	switch {
	case strings.ContainsAny(flag, " \t\r\n\x00"):
		return "has blanks; write each argument as an element of its own, like --v=4"
	case strings.HasPrefix(flag, "--") && strings.Trim(flag, "-") != "":
		return ""
	case flag != "" && i > 0 && strings.HasPrefix(flags[i-1], "--") && !strings.Contains(flags[i-1], "="):
		return "" // the value of the flag before
	}
	return "must begin with --, like --v=4"
}

// validateKubeletConfig looks closely at what muster reads itself, and at the rest as far as its type goes.
func validateKubeletConfig(path *field.Path, config map[string]any) field.ErrorList {
	var problems field.ErrorList
	for _, header := range [...]struct{ name, want string }{{"apiVersion", KubeletAPIVersion}, {"kind", KubeletKind}} {
		if got, there := config[header.name]; there && got != header.want {
			problems = append(problems, field.NotSupported(path.Child(header.name), fmt.Sprint(got), []string{header.want}))
		}
	}
	if value, there := config["maxPods"]; there && value != nil {
		if number, ok := wholeNumber(value); !ok || number < 1 || number > math.MaxInt32 {
			problems = append(problems, field.Invalid(path.Child("maxPods"), value, "must be a whole number, 1 or more"))
		}
	}
	if value, there := config["clusterDNS"]; there && value != nil {
		list, ok := value.([]any)
		if !ok {
			problems = append(problems, field.Invalid(path.Child("clusterDNS"), value, "must be a list of IP addresses"))
		}
		for i, element := range list {
			if _, err := netip.ParseAddr(fmt.Sprint(element)); err != nil {
				problems = append(problems, field.Invalid(path.Child("clusterDNS").Index(i), element, "must be an IP address"))
			}
		}
	}
	problems = append(problems, validateTaints(path.Child("registerWithTaints"), config["registerWithTaints"])...)
	rest := maps.Clone(config)
	for _, name := range []string{"apiVersion", "kind", "maxPods", "clusterDNS", "registerWithTaints"} {
		delete(rest, name)
	}
	return append(problems, kubeletFields().mistyped(path, rest)...)
}

// wholeNumber reads a number that came by YAML or was set by a program.
func wholeNumber(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case int32:
		return int64(value), true
	case int:
		return int64(value), true
	case float64: // 110.0
		return int64(value), value == math.Trunc(value) && math.Abs(value) <= math.MaxInt32
	}
	return 0, false
}

// MaxPods is what spec.kubelet.config says of maxPods, which wins over any formula.
func (k Kubelet) MaxPods() (int32, bool) {
	number, ok := wholeNumber(k.Config["maxPods"])
	if !ok || number < 1 || number > math.MaxInt32 {
		return 0, false
	}
	return int32(number), true
}

func validateTaints(path *field.Path, value any) field.ErrorList {
	if value == nil {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		return field.ErrorList{field.Invalid(path, value, "must be a list of taints")}
	}
	var problems field.ErrorList
	effects := []string{"NoExecute", "NoSchedule", "PreferNoSchedule"}
	for i, element := range list {
		at := path.Index(i)
		taint, ok := element.(map[string]any)
		if !ok {
			problems = append(problems, field.Invalid(at, element, "must be a taint with key, value and effect"))
			continue
		}
		if key, _ := taint["key"].(string); key == "" {
			problems = append(problems, field.Required(at.Child("key"), ""))
		}
		if effect, _ := taint["effect"].(string); !slices.Contains(effects, effect) {
			problems = append(problems, field.NotSupported(at.Child("effect"), effect, effects))
		}
		for _, name := range slices.Sorted(maps.Keys(taint)) {
			if !slices.Contains([]string{"key", "value", "effect"}, name) {
				problems = append(problems, field.Forbidden(at.Child(name), "a taint has key, value and effect"))
			}
		}
	}
	return problems
}
