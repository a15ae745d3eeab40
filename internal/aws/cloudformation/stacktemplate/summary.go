// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Capabilities of CloudFormation: what a caller acknowledges that a template does.
const (
	CapabilityIAM        = "CAPABILITY_IAM"
	CapabilityNamedIAM   = "CAPABILITY_NAMED_IAM"
	CapabilityAutoExpand = "CAPABILITY_AUTO_EXPAND"
)

// Summary is what GetTemplateSummary and ValidateTemplate answer.
type Summary struct {
	Description string
	// Parameters are in the order of the template.
	Parameters []Parameter
	// ResourceTypes are sorted, each once.
	ResourceTypes []string
	// Capabilities must be acknowledged (Missing), with the reason in words. Both are empty for a template that needs none.
	Capabilities       []string
	CapabilitiesReason string
	// Metadata is the section of the template as JSON, or "".
	Metadata   string
	Transforms []string
}

// nameProperties are the properties that give an IAM resource a name of the caller's.
var nameProperties = map[string]string{
	"AWS::IAM::Group":           "GroupName",
	"AWS::IAM::InstanceProfile": "InstanceProfileName",
	"AWS::IAM::ManagedPolicy":   "ManagedPolicyName",
	"AWS::IAM::Role":            "RoleName",
	"AWS::IAM::User":            "UserName",
}

// Summary describes the template. Every type of IAM needs a capability: CAPABILITY_NAMED_IAM if a resource has a name of
// its own, CAPABILITY_IAM otherwise. A transform needs CAPABILITY_AUTO_EXPAND. Conditions are not evaluated: a resource
// that is not made counts.
func (t *Template) Summary() Summary {
	s := Summary{Description: t.Description, Parameters: t.Parameters, Transforms: t.Transforms}
	types, ofIAM, named := map[string]bool{}, map[string]bool{}, false
	for _, r := range t.Resources {
		types[r.Type] = true
		if strings.HasPrefix(r.Type, "AWS::IAM::") {
			ofIAM[r.Type] = true
			named = named || hasName(r)
		}
	}
	s.ResourceTypes = slices.Sorted(maps.Keys(types))
	switch {
	case named:
		s.Capabilities = append(s.Capabilities, CapabilityNamedIAM)
	case len(ofIAM) > 0:
		s.Capabilities = append(s.Capabilities, CapabilityIAM)
	}
	var reasons []string
	if len(ofIAM) > 0 {
		reasons = append(reasons, "The following resource(s) require capabilities: ["+strings.Join(slices.Sorted(maps.Keys(ofIAM)), ", ")+"]")
	}
	if len(t.Transforms) > 0 {
		s.Capabilities = append(s.Capabilities, CapabilityAutoExpand)
		reasons = append(reasons, "The following transform(s) require capabilities: ["+strings.Join(t.Transforms, ", ")+"]")
	}
	s.CapabilitiesReason = strings.Join(reasons, "; ")
	if len(t.Metadata) > 0 {
		if text, err := json.Marshal(t.Metadata); err == nil {
			s.Metadata = string(text)
		}
	}
	return s
}

// hasName reports whether a resource of IAM may get a name of the caller's.
func hasName(r Resource) bool {
	property, ok := nameProperties[r.Type]
	value, given := r.properties[property]
	c, isCall := value.(*call)
	none := isCall && c.function == ref && c.name() == "AWS::NoValue"
	return ok && given && !none
}

// Missing returns the capabilities that a template needs and a caller did not acknowledge. CAPABILITY_NAMED_IAM covers
// CAPABILITY_IAM.
func (s *Summary) Missing(acknowledged []string) []string {
	var missing []string
	for _, needed := range s.Capabilities {
		covered := needed == CapabilityIAM && slices.Contains(acknowledged, CapabilityNamedIAM)
		if !covered && !slices.Contains(acknowledged, needed) {
			missing = append(missing, needed)
		}
	}
	return missing
}
