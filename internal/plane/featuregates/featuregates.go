// SPDX-License-Identifier: Apache-2.0

// Package featuregates asks the programs of a control plane whether they take feature gates, before any of them is
// started with them. A program that is asked for its version reads its feature gates first: so the answer is that of the
// very program, for its minor, and no table can be wrong. It trusts the programs, which are Muster's own build.
//
// A gate that a program does not know, or that it has locked, is refused by its name. Gates that need others are refused
// with the program's words. A program that cannot be asked is an error of another type, and refuses nothing.
package featuregates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
)

// patience is how long a program may take to answer. On an idle host it takes a tenth of a second.
const patience = 10 * time.Second

// alphaPattern finds the gates that the help of a program calls alpha.
var alphaPattern = regexp.MustCompile(`(?m)^\s*(?:kube:)?([A-Za-z0-9]+)=true\|false \(ALPHA`)

// wordsPattern finds what a program says of its end.
var wordsPattern = regexp.MustCompile(`err="((?:[^"\\]|\\.)*)"`)

// Refusal says which gates programs do not take, and why.
type Refusal struct{ Reasons []string }

func (r *Refusal) Error() string { return strings.Join(r.Reasons, "; ") }

// Check asks programs, by their paths, whether they take feature gates. A *Refusal says why one does not.
func Check(ctx context.Context, programs []string, gates v1alpha1.FeatureGates) error {
	if len(gates) == 0 {
		return nil
	}
	var reasons []string
	for _, program := range programs {
		whole, err := ask(ctx, program, gates)
		if err != nil {
			return err
		}
		if whole == "" {
			continue
		}
		alone, err := eachAlone(ctx, program, gates)
		if err != nil {
			return err
		}
		if len(alone) == 0 { // the other programs say the same, in another order
			return &Refusal{append(reasons, "they cannot be set together: "+whole)}
		}
		reasons = append(reasons, alone...)
	}
	if len(reasons) == 0 {
		return nil
	}
	slices.Sort(reasons)
	return &Refusal{slices.Compact(reasons)}
}

// eachAlone are the gates that a program takes in no company, each with the program's words.
func eachAlone(ctx context.Context, program string, gates v1alpha1.FeatureGates) (reasons []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		says, err := ask(ctx, program, v1alpha1.FeatureGates{name: gates[name]})
		if err != nil {
			return nil, err
		}
		if says != "" && !strings.Contains(says, "depends on") {
			reasons = append(reasons, fmt.Sprintf("%s cannot be %v: %s", name, gates[name], says))
		}
	}
	return reasons, nil
}

// ask returns what a program says against feature gates, or "".
func ask(ctx context.Context, program string, gates v1alpha1.FeatureGates) (says string, err error) {
	output, err := run(ctx, program, "--feature-gates="+component.FeatureGateFlag(gates), "--version")
	if exit := (*exec.ExitError)(nil); err == nil || !errors.As(err, &exit) || !exit.Exited() {
		return "", err
	}
	if found := wordsPattern.FindAllStringSubmatch(output, -1); len(found) > 0 {
		return strings.ReplaceAll(found[len(found)-1][1], `\"`, `"`), nil
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return lines[len(lines)-1], nil
}

// Alpha returns those of some feature gates that a program turns on although it calls them alpha; AllAlpha and AllBeta are
// among them.
func Alpha(ctx context.Context, program string, gates v1alpha1.FeatureGates) ([]string, error) {
	on := slices.DeleteFunc(slices.Sorted(maps.Keys(gates)), func(name string) bool { return !gates[name] })
	if len(on) == 0 {
		return nil, nil
	}
	help, err := run(ctx, program, "--help")
	if err != nil {
		return nil, err
	}
	alpha := map[string]bool{"AllBeta": true}
	for _, found := range alphaPattern.FindAllStringSubmatch(help, -1) {
		alpha[found[1]] = true
	}
	return slices.DeleteFunc(on, func(name string) bool { return !alpha[name] }), nil
}

// run runs a program and returns what it says.
func run(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{}
	output, err := cmd.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("asking %s about feature gates: %w", program, err)
	}
	return string(output), nil
}
