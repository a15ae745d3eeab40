// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"maps"
	"slices"
)

// Rehearse evaluates everything that can be evaluated before a stack makes anything: conditions, all attributes of the
// resources that are created, outputs, and the names of exports. Env.Resource is asked for resources that exist already;
// the values of all others are Unknown. Returns the properties of the resources that are created, by logical id, or an
// *Invalid with all problems.
func (t *Template) Rehearse(env Env) (map[string]map[string]any, error) {
	e := t.evaluation(env)
	e.rehearse = true
	var root *path
	for _, name := range slices.Sorted(maps.Keys(t.conditions)) {
		e.holds(name, root.key("Conditions").key(name))
	}
	all, total := map[string]map[string]any{}, 0
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		r := t.Resources[id]
		at := resourcePath(id)
		if created, _ := e.holds(r.Condition, at.key("Condition")); !created {
			continue
		}
		e.budget = min(MaxValue, maxRehearsal-total)
		before := e.budget
		all[id], _ = e.fields(r.properties, at.key("Properties"))
		e.fields(r.creationPolicy, at.key("CreationPolicy"))
		e.fields(r.updatePolicy, at.key("UpdatePolicy"))
		e.fields(r.metadata, at.key("Metadata"))
		total += before - max(e.budget, 0)
	}
	e.budget = min(MaxValue, maxRehearsal-total)
	e.outputs(root.key("Outputs"))
	if err := e.err(); err != nil {
		return nil, err
	}
	return all, nil
}

// OutputValue is an output of a stack.
type OutputValue struct {
	Name        string
	Value       string
	Description string
	// Export is the name under which other stacks may import the value, or "".
	Export string
	// Secret reports whether the value contains a parameter with NoEcho.
	Secret bool
}

// OutputValues evaluates the outputs whose conditions hold, sorted by name. Two of them with one name of an export are a
// problem. The error is an *Invalid.
func (t *Template) OutputValues(env Env) ([]OutputValue, error) {
	e := t.evaluation(env)
	var root *path
	values := e.outputs(root.key("Outputs"))
	if err := e.err(); err != nil {
		return nil, err
	}
	return values, nil
}

// outputs evaluates all outputs. A value that is Unknown is "".
func (e *evaluation) outputs(at *path) []OutputValue {
	var values []OutputValue
	exported := map[string]string{} // output by name of its export
	for _, name := range slices.Sorted(maps.Keys(e.Outputs)) {
		output, at := e.Outputs[name], at.key(name)
		if exists, _ := e.holds(output.Condition, at.key("Condition")); !exists {
			continue
		}
		value, _, ok := e.text(output.value, at.key("Value"))
		result := OutputValue{Name: name, Value: value, Description: output.Description, Secret: e.secret(output.value)}
		if output.Exported {
			if result.Secret {
				e.add(at.key("Value"), "the value contains a parameter with NoEcho, and stacks that import it would show it: do not export it")
			}
			at := at.key("Export").key("Name")
			export, known, exportOK := e.text(output.exportName, at)
			switch other, twice := exported[export]; {
			case e.secret(output.exportName):
				e.add(at, "the name of an export is shown to everybody, and contains a parameter with NoEcho")
			case !exportOK:
			case !known:
				e.add(at, "the name of an export is needed before resources are made")
			case export == "":
				e.add(at, "the name of an export is empty")
			case twice:
				e.add(at, "the output %s exports the same name", other)
			}
			exported[export], result.Export, ok = name, export, ok && exportOK
		}
		if ok {
			values = append(values, result)
		}
	}
	return values
}
