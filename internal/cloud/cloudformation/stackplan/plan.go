// SPDX-License-Identifier: Apache-2.0

package stackplan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/cloudformation/resource"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

// Asked is what a request asks a stack to be.
type Asked struct {
	// Template is the body of the template.
	Template string
	// Parameters are the texts that were given, those of NoEcho parameters among them.
	Parameters map[string]string
	// Stored are the values that Systems Manager had for parameters of the template that name one there.
	Stored           map[string]string
	Capabilities     []string
	Tags             map[string]string
	NotificationARNs []string
}

// Size is how many bytes the template, the parameters and the tags have.
func (a Asked) Size() int {
	size := len(a.Template)
	for _, texts := range []map[string]string{a.Parameters, a.Stored, a.Tags} {
		for name, value := range texts {
			size += len(name) + len(value)
		}
	}
	return size
}

// Place is where a stack is.
type Place struct {
	Region, Account string
	// StackID is the ARN of the stack.
	StackID, StackName string
	// Zones are the names of the region's availability zones.
	Zones []string
	// Imports returns the value of an export of the account.
	Imports func(name string) (string, error)
}

// Plan is a template with its parameters, at its place.
type Plan struct {
	Template *stacktemplate.Template
	asked    Asked
	place    Place
	values   map[string]any
}

// Read reads a template and its parameters. The error is a *stacktemplate.Invalid with all problems.
func Read(asked Asked, place Place) (*Plan, error) {
	template, err := stacktemplate.Parse([]byte(asked.Template))
	if err != nil {
		return nil, err
	}
	values, err := template.Arguments(asked.Parameters)
	if err != nil {
		return nil, err
	}
	if len(template.Stored(values)) > 0 {
		if values, err = template.WithStored(values, asked.Stored); err != nil {
			return nil, err
		}
	}
	return &Plan{template, asked, place, values}, nil
}

// Stored are the names of parameters of Systems Manager that a template asks for, by its own parameters.
func Stored(asked Asked) (map[string]string, error) {
	template, err := stacktemplate.Parse([]byte(asked.Template))
	if err != nil {
		return nil, err
	}
	values, err := template.Arguments(asked.Parameters)
	if err != nil {
		return nil, err
	}
	return template.Stored(values), nil
}

// Imported are the names of the exports that the template imports.
func (p *Plan) Imported(s stack.State) []string {
	names, env := map[string]bool{}, p.env(s)
	env.Imports = func(name string) (string, error) {
		names[name] = true
		return p.place.Imports(name)
	}
	_, _ = p.Template.Rehearse(env) // its problems were told when the stack was made
	return slices.Sorted(maps.Keys(names))
}

// Exports are the names that the template exports.
func (p *Plan) Exports(s stack.State) ([]string, error) {
	env := p.env(s)
	made := env.Resource
	env.Resource = func(id string) (string, map[string]any, bool) {
		if ref, attributes, ok := made(id); ok {
			return ref, attributes, true
		}
		of := p.Template.Resources[id].Type
		_, names, _ := resource.Known(of)
		attributes := map[string]any{}
		for name := range names {
			attributes[name] = id + "." + name
		}
		return id, attributes, true
	}
	values, err := p.Template.OutputValues(env)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, value := range values {
		if value.Export != "" {
			names = append(names, value.Export)
		}
	}
	return names, nil
}

// env is what the template is evaluated with: the stack's resources that are there.
func (p *Plan) env(s stack.State) stacktemplate.Env {
	suffix := "amazonaws.com"
	return stacktemplate.Env{
		Parameters: p.values, Zones: p.place.Zones, Imports: p.place.Imports,
		Pseudo: stacktemplate.Pseudo{
			Region: p.place.Region, AccountID: p.place.Account, Partition: "aws", StackID: p.place.StackID, StackName: p.place.StackName, URLSuffix: suffix,
			NotificationARNs: p.asked.NotificationARNs,
		},
		Resource: func(id string) (string, map[string]any, bool) {
			r, ok := s.Current(id)
			if !ok || r.PhysicalID == "" {
				return "", nil, false
			}
			return r.PhysicalID, r.Attributes, true
		},
	}
}

// Check finds everything that is wrong before anything is made: types, properties, references, conditions, imports. The state
// is that of the stack before an update, empty for a new one. The error is a *stacktemplate.Invalid.
func (p *Plan) Check(s stack.State) error {
	if err := p.Template.Check(resource.Known); err != nil {
		return err
	}
	if _, err := p.Template.Order(); err != nil {
		return err
	}
	env := p.env(s)
	all, err := p.Template.Rehearse(env)
	if err != nil {
		return err
	}
	var problems []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		of, err := resource.Find(p.Template.Resources[id].Type)
		if err != nil {
			problems = append(problems, "Resources."+id+".Type: "+err.Error())
			continue
		}
		for _, problem := range of.Check(all[id]) {
			problems = append(problems, "Resources."+id+".Properties: "+problem)
		}
		problems = append(problems, p.policies(env, id)...)
		if r := p.Template.Resources[id]; r.DeletionPolicy == "Snapshot" || r.UpdateReplacePolicy == "Snapshot" {
			problems = append(problems, "Resources."+id+": there are no snapshots of "+r.Type+": choose Delete or Retain")
		}
	}
	if len(problems) > 0 {
		return &stacktemplate.Invalid{Problems: problems}
	}
	return nil
}

// rolling is the only UpdatePolicy that has an effect here.
const rolling = "AutoScalingRollingUpdate"

// policies are the problems of a resource's policies.
func (p *Plan) policies(env stacktemplate.Env, id string) []string {
	creation, update, err := p.Template.Policies(env, id)
	if err != nil {
		return nil // it depends on a resource that is not there yet
	}
	var problems []string
	if len(creation) > 0 {
		problems = append(problems, "Resources."+id+".CreationPolicy: signals are not supported: remove the policy")
	}
	for _, name := range slices.Sorted(maps.Keys(update)) {
		if name != rolling {
			problems = append(problems, "Resources."+id+".UpdatePolicy."+name+": it is not supported: there is "+rolling)
		}
	}
	return problems
}

// Wanted are the properties of all resources as far as they are known before anything is made, with the tags of the stack.
func (p *Plan) Wanted(s stack.State) (map[string]map[string]any, error) {
	all, err := p.Template.Rehearse(p.env(s))
	if err != nil {
		return nil, err
	}
	for id, properties := range all {
		if of, err := resource.Find(p.Template.Resources[id].Type); err == nil {
			tagged := maps.Clone(properties)
			if tagged == nil {
				tagged = map[string]any{}
			}
			p.tag(of, tagged)
			all[id] = tagged
		}
	}
	return all, nil
}

// Graph is the graph of the stack: resources whose condition holds, and what they need.
func (p *Plan) Graph() (stack.Graph, error) {
	env, graph := p.env(stack.State{}), stack.Graph{}
	for id, r := range p.Template.Resources {
		made, err := p.Template.Created(env, id)
		if err != nil {
			return nil, err
		}
		if made {
			graph[id] = stack.Node{Type: r.Type, DeletionPolicy: stack.Policy(r.DeletionPolicy), ReplacePolicy: stack.Policy(r.UpdateReplacePolicy)}
		}
	}
	for id, node := range graph {
		for _, need := range p.Template.References(id) {
			if _, ok := graph[need]; ok {
				node.Needs = append(node.Needs, need)
			}
		}
		graph[id] = node
	}
	return graph, nil
}

// Judge is a [stack.Judge].
func (p *Plan) Judge(s stack.State, id string, had *stack.Resource) (stack.Wanted, error) {
	properties, err := p.Template.Properties(p.env(s), id)
	if err != nil {
		return stack.Wanted{}, err
	}
	of, err := resource.Find(p.Template.Resources[id].Type)
	if err != nil {
		return stack.Wanted{}, err
	}
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	p.tag(of, properties)
	if _, update, err := p.Template.Policies(p.env(s), id); err != nil {
		return stack.Wanted{}, err
	} else if len(update) > 0 {
		properties[resource.UpdatePolicy] = update
	}
	_, named := properties[of.Named]
	next := p.nameOf(id, s.Serial+1)
	switch {
	case of.Named == "" || named:
	case had == nil:
		properties[of.Named] = next
	case had.Properties[of.Named] == p.nameOf(id, had.Serial):
		properties[of.Named] = had.Properties[of.Named]
	default: // the template had a name and has none any more
		properties[of.Named] = next
	}
	if had == nil {
		return stack.Wanted{Properties: properties}, nil
	}
	changed, replaces := of.Changes(had.Properties, properties)
	switch {
	case len(changed) == 0:
		return stack.Wanted{Properties: properties}, nil
	case !replaces:
		return stack.Wanted{Properties: properties, Change: stack.InPlace}, nil
	case of.Named == "":
	case named && !slices.Contains(changed, of.Named):
		return stack.Wanted{}, fmt.Errorf("CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename %v and update the stack again.", properties[of.Named]) //nolint:revive,staticcheck // AWS's words
	case !named:
		properties[of.Named] = next
	}
	return stack.Wanted{Properties: properties, Change: stack.Replace}, nil
}

// mostInName bounds generated names, so that each service takes them.
const mostInName = 63

// nameOf is the name of a resource that the template does not name, of one creation.
func (p *Plan) nameOf(id string, serial int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", p.place.StackID, id, serial))
	end := "-" + strings.ToUpper(hex.EncodeToString(sum[:6]))
	begin := p.place.StackName + "-" + id
	return begin[:min(len(begin), mostInName-len(end))] + end
}

// Missing are the capabilities that the template needs and the request did not acknowledge, with the reason.
func (p *Plan) Missing() (missing []string, reason string) {
	summary := p.Template.Summary()
	return summary.Missing(p.asked.Capabilities), summary.CapabilitiesReason
}

// Shown are the parameters of the template with the values that it has, and **** for those of NoEcho parameters.
func (p *Plan) Shown() []Parameter {
	var all []Parameter
	for i := range p.Template.Parameters {
		one := &p.Template.Parameters[i]
		shown := Parameter{Name: one.Name}
		if given, ok := p.asked.Parameters[one.Name]; ok {
			shown.Value = given
		} else if one.Default != nil {
			shown.Value = *one.Default
		}
		if one.Stored() {
			shown.Resolved = p.asked.Stored[one.Name]
		}
		if one.NoEcho {
			shown.Value, shown.Resolved = "****", ""
		}
		all = append(all, shown)
	}
	return all
}

// Parameter is a parameter as it is shown.
type Parameter struct {
	Name, Value string
	// Resolved is the value that Systems Manager had for the name that Value is; empty for other parameters.
	Resolved string
}

// Properties are the properties of a resource as JSON for people, with **** for values of NoEcho parameters; empty where they
// cannot be told.
func (p *Plan) Properties(s stack.State, id string) string {
	return jsonOf(p.Template.Shown(p.env(s), id))
}

// Metadata is the attribute Metadata of a resource as JSON; empty without one.
func (p *Plan) Metadata(s stack.State, id string) string {
	return jsonOf(p.Template.ResourceMetadata(p.env(s), id))
}

func jsonOf(value map[string]any, err error) string {
	if err != nil || len(value) == 0 {
		return ""
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}

// Outputs are the outputs of a stack whose resources are there. Values of NoEcho parameters show as ****.
func (p *Plan) Outputs(s stack.State) ([]stacktemplate.OutputValue, error) {
	return p.Template.OutputValues(p.env(s))
}

// Problems is the text of an error of this package, or of any other.
func Problems(err error) (text string, invalid bool) {
	if known, ok := errors.AsType[*stacktemplate.Invalid](err); ok {
		return known.Error(), true
	}
	return err.Error(), false
}
