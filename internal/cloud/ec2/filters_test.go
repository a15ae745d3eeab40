// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"
)

// Filters of requests do the same for every noun; testdata/filters.txt in the package of a noun has the values.
func TestFiltersOfRequests(t *testing.T) {
	w := instancesWorld(t)
	w.ask("CreateLaunchTemplate&LaunchTemplateName=web&LaunchTemplateData.InstanceType=t3.small&TagSpecification.1.ResourceType=launch-template&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=blue", 200)
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateName=web&LaunchTemplateData.InstanceType=m5.large", 200)
	const all, versions = "DescribeInstanceStatus&IncludeAllInstances=true", "DescribeLaunchTemplateVersions&LaunchTemplateName=web"
	for _, noun := range []struct {
		request, item    string // how often item stands in an answer is how many are chosen
		name, one, other string // a filter, and a value of one resource and of another
		wild             string // takes both values
		tag              string // KEY=VALUE of one resource; empty if the noun has no tags
	}{
		{"DescribeInstances", "<instanceId>", "instance-type", "m5.large", "local", "*l*", "Name=one"},
		{all, "<instanceId>", "instance-state-name", "running", "pending", "?*n*ing", ""},
		{"DescribeLaunchTemplates", "<launchTemplateId>", "launch-template-name", "web", "never", "w?b", "team=blue"},
		{versions, "<versionNumber>", "instance-type", "m5.large", "t3.small", "*.*", ""},
	} {
		count := func(filter string, want int) {
			t.Helper()
			if answer := w.ask(noun.request+filter, 200); strings.Count(answer, noun.item) != want {
				t.Errorf("%s%s: %s, want %d", noun.request, filter, answer, want)
			}
		}
		filter := "&Filter.1.Name=" + noun.name
		both := strings.Count(w.ask(noun.request, 200), noun.item)
		count(filter+"&Filter.1.Value.1="+noun.one, 1)
		count(filter+"&Filter.1.Value.1="+strings.ToUpper(noun.one), 0)
		count(filter+"&Filter.1.Value.1="+noun.one+"&Filter.1.Value.2="+noun.other, both)
		count(filter+"&Filter.1.Value.1="+noun.wild, both)
		count(filter+"&Filter.1.Value.1="+noun.one+"&Filter.2.Name="+noun.name+"&Filter.2.Value.1="+noun.other, 0)
		if key, value, _ := strings.Cut(noun.tag, "="); key != "" {
			count("&Filter.1.Name=tag:"+key+"&Filter.1.Value.1="+value, 1)
			count("&Filter.1.Name=tag-key&Filter.1.Value.1="+key, 1)
			count("&Filter.1.Name=tag-value&Filter.1.Value.1="+value[:2]+"*", 1)
		}
		w.ask(noun.request+"&Filter.1.Name=colour&Filter.1.Value.1=red", 400, "<Code>InvalidParameterValue</Code><Message>The filter 'colour' is invalid</Message>")
		w.ask(noun.request+filter, 400, "The filter '"+noun.name+"' has no values: name at least one")
	}
	w.ask(versions+"&Filter.1.Name=tag:team&Filter.1.Value.1=blue", 400, "The filter 'tag:team' is invalid")
	w.ask(versions+"&Filter.1.Name=tag-key&Filter.1.Value.1=team", 400, "The filter 'tag-key' is invalid")
}
