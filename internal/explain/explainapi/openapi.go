// SPDX-License-Identifier: Apache-2.0

package explainapi

import "strings"

// openAPIName is the name of the API's document.
const openAPIName = "apis/" + Group + "/" + Version

// definition is the name of a kind's schema.
func definition(kind string) string { return "dev.muster.explain." + Version + "." + kind }

func field(kind, description string) map[string]any {
	return map[string]any{"type": kind, "description": description}
}

func listOf(items map[string]any, description string) map[string]any {
	return map[string]any{"type": "array", "items": items, "description": description}
}

func objectOf(description string, properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "description": description, "properties": properties}
}

// schemas describe the kinds for kubectl explain; ref begins a reference. They repeat package diagnosis, which has the
// meaning of each field.
func schemas(ref string) map[string]any {
	moment := map[string]any{"type": "string", "format": "date-time"}
	evidence := objectOf("One thing that was seen.", map[string]any{
		"source": field("string", "What it was seen in, such as log, csr or node."),
		"object": field("string", "What it is about, such as machine/i-0123456789abcdef0."),
		"look":   field("string", "A command on the host that shows the evidence."), "time": moment,
		"code":    field("string", "A word for programs, as the source has it."),
		"text":    field("string", "The evidence as it was written. Parts of it may be a stranger's."),
		"cause":   field("string", "The identifier that the part wrote which saw it."),
		"trouble": field("boolean", "Whether it says that something is wrong."),
	})
	unseen := objectOf("What could not be looked at, and why.", map[string]any{"what": field("string", "What it is."), "why": field("string", "Why it was not seen.")})
	report := objectOf("What muster explain KIND NAME -o json prints.", map[string]any{
		"kind": field("string", "The kind of what is explained."), "name": field("string", "The name of what is explained."),
		"verdict": field("string", "Healthy, OnItsWay, Cause (the cause is known), or NotKnown."), "at": moment,
		"steps": listOf(objectOf("A step on the way to a node.", map[string]any{
			"step": field("string", "Its name."), "state": field("string", "done, waiting, failed, not reached, not needed, or not seen."), "time": moment,
		}), "How far a node is on its way."),
		"causes": listOf(objectOf("A cause that was found.", map[string]any{
			"cause": field("string", "Its identifier, such as M-IAM-01."), "title": field("string", "What it is."), "step": field("string", "The step that it keeps from."),
			"sentence": field("string", "What is wrong."), "fix": field("string", "A command or edit that mends it."),
			"evidence": listOf(evidence, "What shows it."), "consequences": listOf(map[string]any{"type": "string"}, "Causes that follow from it."),
		}), "What is wrong."),
		"other":    listOf(evidence, "Evidence of trouble that no cause explains."),
		"standing": listOf(evidence, "What waits, and what a failure has left behind."),
		"unseen":   listOf(unseen, "What could not be looked at."),
	})
	all := map[string]any{}
	for _, one := range resources() {
		properties := map[string]any{
			"apiVersion": field("string", "explain.muster.dev/v1alpha1"), "kind": field("string", one.kind),
			"metadata": objectOf("Standard metadata: the name alone.", map[string]any{"name": field("string", "The name of what is explained.")}), "report": report,
		}
		schema := objectOf("Why a "+one.explains+" is as it is, as muster explain says it.", properties)
		schema["x-kubernetes-group-version-kind"] = []any{gvk(one.kind)}
		all[definition(one.kind)] = schema
		items := objectOf("A list of explanations.", map[string]any{
			"apiVersion": field("string", "explain.muster.dev/v1alpha1"), "kind": field("string", one.kind+"List"), "metadata": map[string]any{"type": "object"},
			"items": map[string]any{"type": "array", "items": map[string]any{"$ref": ref + definition(one.kind)}},
		})
		items["x-kubernetes-group-version-kind"] = []any{gvk(one.kind + "List")}
		all[definition(one.kind+"List")] = items
	}
	return all
}

func gvk(kind string) map[string]any {
	return map[string]any{"group": Group, "version": Version, "kind": kind}
}

// operations are the paths of the API; answer makes the answer of one of a reference to its schema, and parameter is the name of an object.
func operations(ref string, answer func(reference map[string]any) map[string]any, parameter map[string]any) map[string]any {
	all := map[string]any{}
	for _, one := range resources() {
		operation := func(id, action, kind string) map[string]any {
			return map[string]any{"get": map[string]any{
				"operationId": id + Version + one.kind, "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk(one.kind),
				"responses": map[string]any{"200": answer(map[string]any{"$ref": ref + definition(kind)})},
			}}
		}
		path := strings.TrimSuffix(prefix, "/") + "/" + one.plural
		all[path] = operation("list", "list", one.kind+"List")
		single := operation("read", "get", one.kind)
		single["parameters"] = []any{parameter}
		all[path+"/{name}"] = single
	}
	return all
}

func info() map[string]any { return map[string]any{"title": "Muster", "version": Version} }

// openAPIv2 is the document of earlier clients.
func openAPIv2() map[string]any {
	const ref = "#/definitions/"
	answer := func(reference map[string]any) map[string]any {
		return map[string]any{"description": "OK", "schema": reference}
	}
	name := map[string]any{"name": "name", "in": "path", "required": true, "type": "string", "uniqueItems": true}
	return map[string]any{"swagger": "2.0", "info": info(), "paths": operations(ref, answer, name), "definitions": schemas(ref)}
}

// openAPIv3 is the document of kubectl explain.
func openAPIv3() map[string]any {
	const ref = "#/components/schemas/"
	answer := func(reference map[string]any) map[string]any {
		return map[string]any{"description": "OK", "content": map[string]any{"application/json": map[string]any{"schema": reference}}}
	}
	name := map[string]any{"name": "name", "in": "path", "required": true, "schema": map[string]any{"type": "string"}}
	return map[string]any{"openapi": "3.0.0", "info": info(), "paths": operations(ref, answer, name), "components": map[string]any{"schemas": schemas(ref)}}
}
