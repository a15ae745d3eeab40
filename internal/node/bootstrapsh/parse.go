// SPDX-License-Identifier: Apache-2.0

package bootstrapsh

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Result is what the arguments say.
type Result struct {
	Spec nodeconfig.Spec
	// ContainerdConfigFile is the path of a file whose content is to become spec.containerd.config; empty without such
	// a file.
	ContainerdConfigFile string
	// Understood tells what became of each argument, a line each.
	Understood []string
	// Warnings tell of arguments that do nothing here.
	Warnings []string
}

// ErrHelp means that help was asked for.
var ErrHelp = errors.New("help was asked for")

// maxArguments bounds what is read; the script has 20 flags with a value each.
const maxArguments = 256

// Parse reads the arguments. Every problem is told, a line each.
func Parse(args []string) (Result, error) {
	if len(args) > maxArguments {
		return Result{}, nodeconfig.Problems{fmt.Sprintf("there are %d arguments; at most %d are allowed", len(args), maxArguments)}
	}
	if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
		return Result{}, ErrHelp
	}
	for i, arg := range args {
		if !utf8.ValidString(arg) || strings.ContainsFunc(arg, unwritable) {
			return Result{}, nodeconfig.Problems{fmt.Sprintf("argument %d is not text: it has bytes that are not UTF-8, or control characters", i+1)}
		}
	}
	p := &parser{given: map[string]string{}}
	p.read(args)
	p.convert()
	if len(p.problems) == 0 { // text that was not understood need not be judged
		p.judge()
	}
	if len(p.problems) > 0 {
		return Result{}, p.problems
	}
	return p.result, nil
}

// unwritable reports whether YAML has no place for a character.
func unwritable(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r) || r == 0xfeff || r == 0xfffe || r == 0xffff
}

type parser struct {
	given    map[string]string // flag to value; an empty one counts as not given, as it did
	names    []string
	result   Result
	problems nodeconfig.Problems
}

func (p *parser) fail(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

func (p *parser) warn(format string, args ...any) {
	p.result.Warnings = append(p.result.Warnings, fmt.Sprintf(format, args...))
}

func (p *parser) understood(format string, args ...any) {
	p.result.Understood = append(p.result.Understood, fmt.Sprintf(format, args...))
}

// read tells flags, their values and names apart.
func (p *parser) read(args []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch _, known := conversions()[arg]; {
		case known && i+1 == len(args):
			p.fail("%s needs a value", arg)
		case known:
			i++
			p.set(arg, args[i])
		case strings.HasPrefix(arg, "-"):
			p.fail("%s", unknown(arg))
		case arg != "":
			p.names = append(p.names, arg)
		}
	}
}

func (p *parser) set(flag, value string) {
	if _, isFlag := conversions()[value]; isFlag {
		p.fail("%s has the flag %s for a value: its own is missing (a variable that was empty?)", flag, value)
		return
	}
	if _, again := p.given[flag]; again {
		p.warn("%s is given more than once; the last one counts", flag)
	}
	p.given[flag] = value
}

// unknown says what to do about a flag that the script did not have. The script itself took it for the name of the
// cluster, or for nothing.
func unknown(arg string) string {
	name, value, joined := strings.Cut(arg, "=")
	if _, ok := conversions()[name]; ok && joined {
		return fmt.Sprintf("%s: the value is a word of its own: %s %s", name, name, shown(name, value))
	}
	return fmt.Sprintf("unknown flag %s; flags of the kubelet go into --kubelet-extra-args, and --help lists the script's own", name)
}

// shown shortens a value that nobody wants to read.
func shown(flag, value string) string {
	if flag == flagCA || len(value) > 200 {
		return "VALUE"
	}
	return value
}

// clusterName is what EKS lets a cluster be called (CreateCluster, name).
var clusterName = regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`)

// convert says it all in the words of a NodeConfig.
func (p *parser) convert() {
	switch {
	case len(p.names) == 0:
		p.fail("the name of the cluster is missing; usage: %s", usageLine)
	case len(p.names) > 1:
		p.fail("there are several names of clusters: %s; give one, and put flags of the kubelet into one word after --kubelet-extra-args", strings.Join(p.names, ", "))
	case !clusterName.MatchString(p.names[0]):
		p.fail("the name of the cluster, %q, must be letters, digits, - and _, 100 at most", p.names[0])
	default:
		p.result.Spec.Cluster.Name = p.names[0]
		p.understood("cluster %s", p.names[0])
	}
	p.family()
	for _, flag := range slices.Sorted(maps.Keys(p.given)) {
		if value := p.given[flag]; value != "" {
			conversions()[flag].do(p, flag, value)
		}
	}
	p.podCount()
	if (p.given[flagEndpoint] == "") != (p.given[flagCA] == "") {
		p.warn("%s and %s belong together: Amazon Linux 2 asked EKS for both unless both were given; here the one that is missing must be in the machine's other user data", flagEndpoint, flagCA)
	}
}

// judge has the NodeConfig judged, in the words of the flags. A missing value may be in the machine's other user data.
func (p *parser) judge() {
	for _, problem := range p.result.Spec.Validate() {
		if problem.Type == field.ErrorTypeRequired {
			continue
		}
		where := problem.Field
		for path, flag := range fields() {
			if strings.HasPrefix(where, path) {
				where = flag
			}
		}
		p.fail("%s: %s", where, strings.TrimPrefix(problem.Error(), problem.Field+": "))
	}
}
