// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Type is one type of resource.
type Type struct {
	Name string // such as AWS::EC2::Subnet
	// Required are properties that a template must have. Each is one of Replaces or Updates, too.
	Required []string
	// Replaces are properties whose change replaces the resource, and Updates those that change in place. A path such as
	// AccessConfig.BootstrapClusterCreatorAdminPermissions is a property of a property that is among Updates.
	Replaces, Updates []string
	// Attributes are what Fn::GetAtt returns.
	Attributes []string
	// ID are the attributes and properties that the physical id, which Ref returns, is made of: the values joined by
	// Separator, which is "|" if it is empty.
	ID        []string
	Separator string
	// Create, Read, Update and Delete are the actions, in the order in which they are called. The first one of Create makes
	// the resource, and the others complete it.
	Create, Read, Update, Delete []Action
	// Once says how a creation whose answer was lost is kept from being made twice.
	Once Once
	// Named is the property that names the resource, for which a name is made if the template gives none; empty for a type
	// without one.
	Named string
	// TagType is what EC2's TagSpecifications call the resource; empty for a type that has none.
	TagType string
	// Names are the members of the first action's input that take properties of other names.
	Names map[string]string
	// Apart are properties that the first action does not take under a name: those after it do, or Derived.
	Apart []string
	// Derived are members of the first action's input that are made out of several properties, or of another form than
	// the property.
	Derived map[string]func(properties map[string]any) (any, error)
	// Beside are required members of the first action's input that no property is: the action is called for each holder of
	// a policy.
	Beside []string
}

// Action is an action of the account, such as ec2:CreateVpc.
type Action struct{ Service, Name string }

// String is the action's name in IAM's policies.
func (a Action) String() string { return a.Service + ":" + a.Name }

// Once is how a creation is kept from being made twice.
type Once uint8

// The ways.
const (
	// ByToken sends the client token of the creation.
	ByToken Once = iota + 1
	// ByTag looks for a resource with the tag of the creation first: the action takes no client token.
	ByTag
	// ByName makes the resource under its name, with the tag of the creation: where the name is taken, the tag says whether
	// the creation took it.
	ByName
	// ByValue puts a value that is the same the second time, at a place that the properties name.
	ByValue
)

// types are all types, by their names.
var types = func() map[string]Type {
	all := map[string]Type{}
	for _, group := range [][]Type{eksTypes(), eksIdentityTypes(), networkTypes(), computeTypes(), iamTypes(), iamHolderTypes(), messageTypes()} {
		for _, t := range group {
			all[t.Name] = t
		}
	}
	return all
}()

// Find finds a type. The error names the types that there are.
func Find(name string) (Type, error) {
	t, ok := types[name]
	if !ok {
		return Type{}, fmt.Errorf("Muster has no resources of the type %q: a template may have %s", name, strings.Join(Names(), ", ")) //nolint:staticcheck // a name
	}
	return t, nil
}

// Names are the names of all types, sorted.
func Names() []string { return slices.Sorted(maps.Keys(types)) }

// Known says of a type which properties and attributes it has, as the check of a template asks; false for an unknown type.
func Known(name string) (properties, attributes map[string]bool, ok bool) {
	t, ok := types[name]
	if !ok {
		return nil, nil, false
	}
	properties, attributes = map[string]bool{}, map[string]bool{}
	for _, p := range t.Properties() {
		properties[p] = true
	}
	for _, a := range t.Attributes {
		attributes[a] = true
	}
	return properties, attributes, true
}

// Properties are the names of all properties, sorted.
func (t Type) Properties() []string {
	var all []string
	for _, path := range slices.Concat(t.Replaces, t.Updates) {
		if !strings.Contains(path, ".") {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

// PhysicalID makes the physical id out of the values of attributes and properties.
func (t Type) PhysicalID(value func(name string) string) string {
	separator := t.Separator
	if separator == "" {
		separator = "|"
	}
	var parts []string
	for _, name := range t.ID {
		parts = append(parts, value(name))
	}
	return strings.Join(parts, separator)
}

// words splits a list of names.
func words(list string) []string { return strings.Fields(list) }

// actions are those of a service, by their names.
func actions(service, names string) []Action {
	var all []Action
	for _, name := range words(names) {
		all = append(all, Action{Service: service, Name: name})
	}
	return all
}
