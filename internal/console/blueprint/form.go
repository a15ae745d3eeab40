// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/machine/instancetype"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/platform/release"
)

// The fields of a form that are no fields of a request.
const (
	// FieldCluster names the cluster that exists; empty for a new one.
	FieldCluster = "cluster"
	// FieldGroups is how many node groups the form has.
	FieldGroups = "groups"
	// FieldToken is the client token.
	FieldToken = "request"
)

// Form is a blueprint as a form of a page has it: its fields have the paths of a request's body, and an address can have them, too.
type Form struct {
	Blueprint
	Values url.Values
	// Count is how many node groups the form has.
	Count int
	// Wrong is what is wrong with texts that are no numbers or labels.
	Wrong []Problem
}

// Filled are the values that a form begins with, for a cluster of some subnets: new, or the one that is named.
func Filled(cluster, token string, subnets []string) url.Values {
	values := url.Values{
		FieldToken: {token}, FieldGroups: {"1"}, "subnetIds": subnets, groupField(0, "name"): {"default"}, groupField(0, "instanceTypes"): {instancetype.Default},
		groupField(0, "minSize"): {"1"}, groupField(0, "desiredSize"): {"2"}, groupField(0, "maxSize"): {"4"}, groupField(0, "diskSize"): {"20"},
	}
	if cluster != "" {
		values.Set(FieldCluster, cluster)
		return values
	}
	values.Set("version", release.Default().Minor())
	values["addons"] = []string{"coredns", "kube-proxy", networkAddon}
	return values
}

func groupField(i int, name string) string { return fmt.Sprintf("nodeGroups[%d].%s", i, name) }

// ReadForm reads a form.
func ReadForm(values url.Values) Form {
	f := Form{Values: values}
	text := func(name string) string { return strings.TrimSpace(strings.ToValidUTF8(values.Get(name), "\uFFFD")) }
	f.Token = text(FieldToken)
	f.Exists, f.Name = text(FieldCluster) != "", cmp.Or(text(FieldCluster), text("name"))
	f.SubnetIDs = chosen(values["subnetIds"])
	if !f.Exists {
		f.Version, f.RoleARN, f.AutoNodeRole = text("version"), text("roleArn"), text("autoNodeRole")
		f.LoggingTypes, f.Addons, f.AutoMode = chosen(values["loggingTypes"]), chosen(values["addons"]), text("autoMode") != ""
	}
	f.Count = f.number(FieldGroups, text(FieldGroups), MostGroups)
	if f.Exists {
		f.Count = 1
	}
	for i := range f.Count {
		f.Groups = append(f.Groups, f.group(i, func(name string) string { return text(groupField(i, name)) }))
	}
	return f
}

func (f *Form) group(i int, text func(string) string) Group {
	number := func(name string) int32 {
		const most = 1<<31 - 1
		return int32(f.number(groupField(i, name), text(name), most)) //nolint:gosec // it is at most that
	}
	g := Group{
		Name: text("name"), InstanceTypes: words(text("instanceTypes")), MinSize: number("minSize"), DesiredSize: number("desiredSize"), MaxSize: number("maxSize"),
		DiskSize: number("diskSize"), CapacityType: text("capacityType"), NodeRole: text("nodeRole"),
	}
	labels, err := nodegroupspec.ParseLabels(words(text("labels")))
	if err != nil {
		f.Wrong = append(f.Wrong, Problem{groupField(i, "labels"), err.Error()})
	}
	for key, value := range labels {
		if g.Labels == nil {
			g.Labels = map[string]string{}
		}
		g.Labels[key] = string(value)
	}
	return g
}

// number reads a whole number up to most; an empty text is 0.
func (f *Form) number(field, text string, most int) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		f.Wrong = append(f.Wrong, Problem{field, fmt.Sprintf("invalid number %.40q: must be a whole number from 0 to %d", text, most)})
		return 0
	}
	return n
}

// Problems are all that is wrong, by the names of the form's fields. Of each field, what is wrong with its text comes first and alone.
func (f Form) Problems() []Problem {
	all := slices.Clone(f.Wrong)
	for _, p := range f.Blueprint.Problems() {
		p.Field = f.fieldOf(p.Field)
		if !slices.ContainsFunc(f.Wrong, func(w Problem) bool { return w.Field == p.Field }) {
			all = append(all, p)
		}
	}
	return all
}

// fieldOf is the name of a form's field with the path of a request.
func (f Form) fieldOf(path string) string {
	switch {
	case path == "clientRequestToken":
		return FieldToken
	case path == "clusterName":
		return FieldCluster
	case path == "nodeGroups":
		return FieldGroups
	case f.Exists && path != "" && path != "subnetIds" && !strings.HasPrefix(path, "subnetIds["):
		path = groupField(0, path)
	}
	name, index, indexed := strings.Cut(path, "[")
	if indexed && name != "nodeGroups" {
		return name
	}
	if group, field, ok := strings.Cut(index, "]."); ok { // nodeGroups[0].instanceTypes[1]
		field, _, _ = strings.Cut(field, "[")
		return "nodeGroups[" + group + "]." + field
	}
	return path
}

// chosen are values without empty ones.
func chosen(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
}

// words are the parts of a text between blanks and commas.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' })
}

// Placed are problems of a request by the names of the form's fields.
func (f Form) Placed(all []Problem) []Problem {
	placed := slices.Clone(all)
	for i := range placed {
		placed[i].Field = f.fieldOf(placed[i].Field)
	}
	return placed
}
