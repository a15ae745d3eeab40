// SPDX-License-Identifier: Apache-2.0

package stackplan

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/internal/aws/cloudformation/resource"
)

// tag adds the tags of the stack to those of a resource that has tags. A launch template has its own in TagSpecifications; the tags of
// instances and volumes, which its data specify, stay as they are.
func (p *Plan) tag(of resource.Type, properties map[string]any) {
	if len(p.asked.Tags) == 0 {
		return
	}
	if slices.Contains(of.Properties(), "Tags") {
		properties["Tags"] = p.tagged(properties["Tags"])
		return
	}
	if !slices.Contains(of.Properties(), specifications) {
		return
	}
	listed, _ := properties[specifications].([]any)
	all, own := make([]any, 0, len(listed)+1), any(nil)
	for _, entry := range listed {
		if one, _ := entry.(map[string]any); fmt.Sprint(one["ResourceType"]) == of.TagType && own == nil {
			own = one["Tags"]
			continue
		}
		all = append(all, entry)
	}
	properties[specifications] = append(all, map[string]any{"ResourceType": of.TagType, "Tags": p.tagged(own)})
}

// specifications is the property of types that tell the kinds of what they tag apart.
const specifications = "TagSpecifications"

// tagged are the tags of a resource, a list of Key and Value or an object, over those of the stack, as a list sorted by key.
func (p *Plan) tagged(own any) []any {
	all := map[string]any{}
	for key, value := range p.asked.Tags {
		all[key] = map[string]any{"Key": key, "Value": value}
	}
	switch own := own.(type) {
	case map[string]any:
		for key, value := range own {
			all[key] = map[string]any{"Key": key, "Value": value}
		}
	case []any:
		for _, entry := range own {
			one, _ := entry.(map[string]any)
			all[fmt.Sprint(one["Key"])] = one
		}
	}
	tags := []any{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, all[key])
	}
	return tags
}
