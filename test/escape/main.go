// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Escape is a program that must fail to get out of a machine. It runs on a machine or in a pod, tries one attack after
// the other, each with several sets of rights, and says of each whether it got out, what held it, or what this kernel
// lacks.
//
// An attack is out only if it shows something of the host: a secret that was planted there (test/escape/prize),
// something of the host that it changed, or a thing that the kernel does for the host's root alone. A setting that an
// attack changes gets its former value back at once. Nothing is left behind but a file in the directory given for that
// (-host-dir), which the host's side looks for, and lines in the host's logs.
//
// What happens if
//
//	an attack hangs or crashes          it is killed after two seconds of a processor, or ten of waiting, and is "unclear", which counts as out
//	a right is named that is not there  the program says so and does nothing
//	a place of a prize is not given     attacks on that prize are "not here"
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"muster.dev/muster/test/escape/places"
	"muster.dev/muster/test/escape/verdict"
)

// The exit statuses.
const (
	allHeld   = 0
	gotOut    = 1
	usageExit = 2
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == childWord {
		os.Exit(childMain(os.Args[2:]))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// order is what the command line asks for.
type order struct {
	attacks []attack
	rights  []right
	output  string
	places  places.Map
}

func run(args []string, stdout, stderr io.Writer) int {
	have, err := startedWith()
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "escape:", err)
		return usageExit
	}
	o, list, err := parse(args, have, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return allHeld
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "escape:", err)
		return usageExit
	case list:
		for _, a := range o.attacks {
			_, _ = fmt.Fprintf(stdout, "%-28s %s (%s)\n", a.name, a.tries, a.prize)
		}
		return allHeld
	}
	all, err := tryAll(o)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "escape:", err)
		return usageExit
	}
	out := bufio.NewWriter(stdout)
	if o.output == "json" {
		err = verdict.Write(out, all...)
	} else {
		printTable(out, all)
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		_, _ = fmt.Fprintln(stderr, "escape:", err)
		return usageExit
	}
	if slices.ContainsFunc(all, func(v verdict.Verdict) bool { return !v.Outcome.Safe() }) {
		return gotOut
	}
	return allHeld
}

func parse(args []string, have capabilities, stderr io.Writer) (order, bool, error) {
	var o order
	flags := flag.NewFlagSet("escape", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "attacks to try, separated by commas (default all)")
	rights := flags.String("rights", "all", "rights to try them with, separated by commas: plain (no capability), cap_NAME (that capability alone), "+
		"all (as started), or each (plain, every capability that the program was started with, all)")
	list := flags.Bool("list", false, "list the attacks and do nothing")
	flags.StringVar(&o.output, "o", "table", "table or json (a line for each verdict)")
	o.places.Register(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, false, err
		}
		return o, false, fmt.Errorf("reading flags: %w", err)
	}
	if flags.NArg() > 0 {
		return o, false, fmt.Errorf("unexpected argument %q: attacks are chosen by -only", flags.Arg(0))
	}
	if o.output != "table" && o.output != "json" {
		return o, false, fmt.Errorf("invalid -o %q: must be table or json", o.output)
	}
	var err error
	if o.attacks, err = choose(*only); err != nil {
		return o, false, err
	}
	o.rights, err = parseRights(*rights, have)
	return o, *list, err
}

// choose finds attacks by their names.
func choose(names string) ([]attack, error) {
	all := attacks()
	if names == "" {
		return all, nil
	}
	var chosen []attack
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(a attack) bool { return a.name == name })
		if i < 0 {
			return nil, fmt.Errorf("invalid -only: there is no attack %q (-list lists them)", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// printTable prints a line for each attack and outcome, with the rights that it was the same for.
func printTable(to io.Writer, all []verdict.Verdict) {
	type row struct{ attack, outcome, why string }
	var rows []row
	rights := map[row][]string{}
	counts := map[verdict.Outcome]int{}
	for _, v := range all {
		r := row{v.Attack, string(v.Outcome), strings.Join(strings.Fields(v.Why), " ")}
		if rights[r] == nil {
			rows = append(rows, r)
		}
		rights[r] = append(rights[r], v.Rights)
		counts[v.Outcome]++
	}
	_, _ = fmt.Fprintf(to, "%-28s %-9s %-22s %s\n", "ATTACK", "OUTCOME", "RIGHTS", "WHY")
	for _, r := range rows {
		with := strings.Join(rights[r], ",")
		if n := len(rights[r]); n > 2 {
			with = fmt.Sprintf("%s and %d more", rights[r][0], n-1)
		}
		_, _ = fmt.Fprintf(to, "%-28s %-9s %-22s %s\n", r.attack, r.outcome, with, r.why)
	}
	_, _ = fmt.Fprintf(to, "out: %d, unclear: %d, held: %d, not here: %d\n", counts[verdict.Out], counts[verdict.Unclear], counts[verdict.Held], counts[verdict.NotHere])
}
