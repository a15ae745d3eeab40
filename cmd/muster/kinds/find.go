// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/statedir"
)

// AskTime is the timeout for resolving a name by the management plane where the records on disk do not have it.
const AskTime = 2 * time.Second

// Choose picks the objects that go by the given names, in that order; all of them for no names. A missing one is an
// error that goes with the objects that were found.
func (k Kind) Choose(objects []client.Object, names []string) ([]client.Object, error) {
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

// find picks the object that goes by a name: by the one that people gave it, before the one that the API server has for
// it.
func (k Kind) find(objects []client.Object, name string) (client.Object, error) {
	name = k.bare(name)
	var all []string
	for _, by := range []func(client.Object) string{NameOf, client.Object.GetName} {
		var found []client.Object
		for _, object := range objects {
			if by(object) == name {
				found = append(found, object)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return nil, fmt.Errorf("several clusters have a %s %q: choose one with --cluster", k.Singular, name)
		}
	}
	for _, object := range objects {
		all = append(all, NameOf(object))
	}
	if k.also != nil {
		var found []client.Object // machines of two VPCs may have one address
		for _, object := range objects {
			others := k.also(object)
			if name != "" && slices.Contains(others, name) {
				found = append(found, object)
			}
			all = append(all, others...)
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			ids := make([]string, 0, len(found))
			for _, object := range found {
				ids = append(ids, object.GetName())
			}
			return nil, several(k.Singular, name, ids)
		}
	}
	hint := terminal.DidYouMean(name, all)
	if hint == "" {
		hint = "; muster get " + k.Word() + " lists them"
	}
	return nil, fmt.Errorf("%s %q not found%s", k.Singular, name, hint)
}

// several is the error for a name that more than one has.
func several(what, name string, ids []string) error {
	return fmt.Errorf("several %ss go by %q: give one of %s, or choose a cluster with --cluster", what, name, strings.Join(ids, ", "))
}

// MachineRecords reads what providers have on disk about machines, which needs no API server.
func MachineRecords(dir statedir.Dir) []machine.Record {
	paths, err := filepath.Glob(filepath.Join(dir.Machines(), "*", machine.RecordFile))
	if err != nil {
		return nil
	}
	var records []machine.Record
	for _, path := range paths {
		if record, err := machine.ReadRecord(path); err == nil { // a record that is just being removed does not count
			records = append(records, record)
		}
	}
	return records
}

// MachineID finds the machine that goes by a name: on the disk, or else in the management plane.
func MachineID(ctx context.Context, o *terminal.Options, p Dialers, dir statedir.Dir, name string) (string, error) {
	name = nodes().bare(Machines().bare(name))
	var known, found []string
	for _, r := range MachineRecords(dir) {
		names := []string{r.ID, r.PrivateDNSName, r.PrivateIP.String()}
		if slices.Contains(names, name) && (o.Cluster == "" || o.Cluster == r.Cluster || r.ID == name) {
			found = append(found, r.ID)
		}
		known = append(known, names...)
	}
	switch len(found) {
	case 0:
	case 1:
		return found[0], nil
	default:
		return "", several("machine", name, found)
	}
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	if plane, err := p.Management(o); err == nil {
		k := Machines()
		if objects, _, err := plane.Objects(ctx, k); err == nil {
			object, err := k.find(objects, name)
			if err != nil {
				return "", err
			}
			return object.GetName(), nil
		}
	}
	return "", fmt.Errorf("machine %q not found%s", name, terminal.DidYouMean(name, known))
}
