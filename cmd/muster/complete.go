// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/machine"
	"muster.dev/muster/internal/state"
)

// askTime is how long the management plane may take to say what a name means, where the disk could not.
const askTime = 2 * time.Second

// completionTime is how long somebody who pressed Tab waits for names.
const completionTime = time.Second

// choose picks the objects that go by the given names, in that order; all of them for no names. What is missing is an error that
// goes with what was found.
func (k kind) choose(objects []client.Object, names []string) ([]client.Object, error) {
	if len(names) == 0 {
		return objects, nil
	}
	var found []client.Object
	var missing []error
	for _, name := range names {
		object, err := k.find(objects, name)
		if err != nil {
			missing = append(missing, err)
		} else if !slices.Contains(found, object) {
			found = append(found, object)
		}
	}
	return found, errors.Join(missing...)
}

// find picks the object that goes by a name.
func (k kind) find(objects []client.Object, name string) (client.Object, error) {
	name = k.bare(name)
	var all []string
	for _, object := range objects {
		if object.GetName() == name {
			return object, nil
		}
		all = append(all, object.GetName())
	}
	if k.also != nil {
		for _, object := range objects {
			others := k.also(object)
			if name != "" && slices.Contains(others, name) {
				return object, nil
			}
			all = append(all, others...)
		}
	}
	hint := didYouMean(name, all)
	if hint == "" {
		hint = "; muster get " + k.word() + " lists them"
	}
	return nil, fmt.Errorf("%s %q not found%s", k.singular, name, hint)
}

// didYouMean suggests the name that is nearest to a mistyped one, if any is near.
func didYouMean(name string, all []string) string {
	best, least := "", max(2, len(name)/4)+1
	for _, candidate := range all {
		if candidate == "" {
			continue
		}
		distance := editDistance(name, candidate)
		if len(name) > 3 && strings.HasPrefix(candidate, name) {
			distance = min(distance, 1)
		}
		if distance < least && 2*distance < len(name) { // "no" is not near to "foo"
			best, least = candidate, distance
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance is the number of letters to add, drop or change to make b out of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// machineRecords reads what providers have on disk about machines, which needs no API server.
func machineRecords(dir state.Dir) []machine.Record {
	paths, err := filepath.Glob(filepath.Join(dir.Machines(), "*", machine.RecordFile))
	if err != nil {
		return nil
	}
	var records []machine.Record
	for _, path := range paths {
		if record, err := machine.ReadRecord(path); err == nil { // one that is just being removed is none
			records = append(records, record)
		}
	}
	return records
}

// machineID finds the machine that goes by a name: on the disk, or else in the management plane.
func machineID(ctx context.Context, o *options, p planes, dir state.Dir, name string) (string, error) {
	name = nodes().bare(machines().bare(name))
	var known []string
	for _, r := range machineRecords(dir) {
		names := []string{r.ID, r.PrivateDNSName, r.PrivateIP.String()}
		if slices.Contains(names, name) {
			return r.ID, nil
		}
		known = append(known, names...)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if plane, err := p.management(o); err == nil {
		k := machines()
		if objects, _, err := plane.objects(ctx, k); err == nil {
			object, err := k.find(objects, name)
			if err != nil {
				return "", err
			}
			return object.GetName(), nil
		}
	}
	return "", fmt.Errorf("machine %q not found%s", name, didYouMean(name, known))
}

// completeNames offers the names of a kind's objects. Whatever goes wrong, there is just nothing to offer.
func completeNames(o *options, p planes, k kind, limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return namesOf(cmd.Context(), o, p, k, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf lists the names of objects that are not among those typed already, each with its other names beside it.
func namesOf(ctx context.Context, o *options, p planes, k kind, typed []string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	quiet := *o
	quiet.err = io.Discard
	plane, err := p.of(k)(&quiet)
	if err != nil {
		return nil
	}
	objects, _, err := plane.objects(ctx, k)
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	for _, object := range objects {
		other := ""
		if k.also != nil {
			other = or(k.also(object)...)
		}
		for _, pair := range [][2]string{{object.GetName(), other}, {other, object.GetName()}} {
			switch {
			case pair[0] == "" || slices.Contains(typed, pair[0]) || slices.Contains(typed, pair[1]):
			case pair[1] == "":
				names = append(names, pair[0])
			default:
				names = append(names, cobra.CompletionWithDesc(pair[0], pair[1]))
			}
		}
	}
	return names
}

// complete offers kinds, and then names.
func (g *getCommand) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		k, typed, err := kindAndNames(args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return namesOf(cmd.Context(), g.options, g.planes, k, typed), cobra.ShellCompDirectiveNoFileComp
	}
	return strings.Split(kindNames(), ", "), cobra.ShellCompDirectiveNoFileComp
}
