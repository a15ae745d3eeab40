// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/platform/strictyaml"
)

// decode reads one document and returns its spec as JSON has it, without what is empty.
func (r *reader) decode(d Source) (map[string]any, bool) {
	before := len(r.problems)
	if bytes.HasPrefix(bytes.TrimSpace(d.Content), []byte("#!")) {
		r.say(d.Name, "is a script, not a NodeConfig")
		return nil, false
	}
	raw, problems := strictyaml.ToJSON(d.Content)
	if problems != nil {
		r.say(d.Name, problems...)
		return nil, false
	}
	document, err := object(raw)
	if err != nil || document == nil {
		r.say(d.Name, "is not a NodeConfig: it has no apiVersion, kind and spec")
		return nil, false
	}
	if !r.kind(d.Name, document) {
		return nil, false
	}
	spec, _ := document["spec"].(map[string]any)
	r.awkward(d.Name, spec)
	if document["apiVersion"] == APIVersionEKS {
		r.foreign(d.Name, spec)
	}
	r.gates(d.Name, spec)
	r.known(d.Name, spec)
	tree, ok := r.typed(d.Name, document)
	return tree, ok && len(r.problems) == before
}

// object decodes JSON, with whole numbers as such.
func object(raw []byte) (map[string]any, error) {
	var o map[string]any
	return o, kjson.UnmarshalCaseSensitivePreserveInts(raw, &o)
}

func (r *reader) kind(name string, document map[string]any) bool {
	version, kind := document["apiVersion"], document["kind"]
	if version != APIVersion && version != APIVersionEKS {
		r.say(name, fmt.Sprintf("apiVersion is %s; it must be %s or %s", shown(version), APIVersionEKS, APIVersion))
	}
	if kind != Kind {
		r.say(name, fmt.Sprintf("kind is %s; it must be %s", shown(kind), Kind))
	}
	return kind == Kind && (version == APIVersion || version == APIVersionEKS)
}

// shown quotes a short text.
func shown(value any) string {
	text, ok := value.(string)
	switch {
	case value == nil || ok && text == "":
		return "missing"
	case !ok:
		return "not text"
	case len(text) > 60:
		return "too long"
	}
	return fmt.Sprintf("%q", text)
}

// awkward looks at values whose decoding would say what must not be said (the digits of a token that YAML takes for a
// number) or not say where (base64), and takes the bad ones out.
func (r *reader) awkward(name string, spec map[string]any) {
	if join, ok := spec["join"].(map[string]any); ok {
		if token, there := join["token"]; there && token != nil {
			if _, ok := token.(string); !ok {
				r.say(name, "spec.join.token: must be text; put it in quotes")
				delete(join, "token")
			}
		}
	}
	if cluster, ok := spec["cluster"].(map[string]any); ok {
		text, ok := cluster["certificateAuthority"].(string)
		if _, err := base64.StdEncoding.DecodeString(text); ok && err != nil {
			problem := "spec.cluster.certificateAuthority: must be base64 of PEM"
			if strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN") {
				problem += "; this is the PEM itself"
			}
			r.say(name, problem)
			delete(cluster, "certificateAuthority")
		}
	}
}

// foreign are muster's own fields in a document of EKS, whose nodes know none of them and would ignore them.
func (r *reader) foreign(name string, spec map[string]any) {
	refuse := func(fields map[string]any, path, field string) {
		if _, there := fields[field]; there {
			r.unknown(name, fmt.Sprintf("%s.%s is muster's own; say apiVersion: %s to use it", path, field, APIVersion))
			delete(fields, field)
		}
	}
	cluster, _ := spec["cluster"].(map[string]any)
	refuse(cluster, "spec.cluster", "domain")
	refuse(cluster, "spec.cluster", "podCIDR")
	instance, _ := spec["instance"].(map[string]any)
	refuse(instance, "spec.instance", "userDataFailurePolicy")
	refuse(spec, "spec", "join")
	refuse(spec, "spec", "logging")
}

// Feature gates of EKS's nodes.
const (
	GateInstanceIDNodeName = "InstanceIdNodeName"
	GateFastImagePull      = "FastImagePull"
)

func (r *reader) gates(name string, spec map[string]any) {
	gates, _ := spec["featureGates"].(map[string]any)
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		if gate != GateInstanceIDNodeName && gate != GateFastImagePull {
			r.unknown(name, fmt.Sprintf("unknown field %q; there are: %s, %s", "spec.featureGates."+gate, GateFastImagePull, GateInstanceIDNodeName))
			delete(gates, gate)
		}
	}
}

// typed decodes into the types and back, which leaves what is known and not empty.
func (r *reader) typed(name string, document map[string]any) (map[string]any, bool) {
	raw, err := json.Marshal(document)
	if err != nil {
		r.say(name, err.Error())
		return nil, false
	}
	var config NodeConfig
	problems, ok := strictyaml.FromJSON(raw, &config)
	for _, problem := range problems {
		switch {
		case !strings.HasPrefix(problem, "unknown field"):
			r.say(name, problem)
		case slices.Contains([]string{"cluster", "containerd", "kubelet", "instance", "featureGates", "join", "logging"}, strings.Trim(strings.TrimPrefix(problem, "unknown field "), `"`)):
			r.unknown(name, problem+"; it belongs under spec")
		default:
			r.unknown(name, problem)
		}
	}
	if !ok {
		return nil, false
	}
	tree, err := treeOf(config.Spec)
	if err != nil {
		r.say(name, err.Error())
		return nil, false
	}
	return tree, true
}

func treeOf(spec Spec) (map[string]any, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return object(raw)
}
