// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// repository is the way from this package to the root of the repository, and module the name of what is there.
const (
	repository = "../../.."
	module     = "muster.dev/muster/"
	faults     = module + "internal/aws/awsfault"
	ours       = module + "internal/cloud/ec2"
)

// codesOfOthers are the packages whose refusals EC2's actions return, and the codes in them that other services answer
// with.
var codesOfOthers = map[string][]string{
	module + "internal/aws/awstag": {
		"BadRequest", "InvalidParameterException", "InvalidTagParameterException", "LimitExceeded", "LimitExceededException", "ServiceQuotaExceededException", "TagException",
		"TooManyTagsError", "TooManyTagsException", "ValidationError", "ValidationException",
	},
	module + "internal/aws/clienttoken":      {"ConflictException", "InvalidParameterException", "InvalidRequestException", "ValidationException"},
	module + "internal/aws/dryrun":           nil,
	module + "internal/aws/ec2filter":        nil,
	module + "internal/aws/ec2id":            nil,
	module + "internal/aws/ec2query":         nil,
	module + "internal/aws/nexttoken":        {"BadRequest", "InvalidMarkerException", "InvalidNextTokenException", "InvalidParameterException", "ValidationError", "ValidationException"},
	module + "internal/aws/queryvalue":       nil,
	module + "internal/cloud/launchtemplate": nil,
	module + "internal/cloud/scalinglaunch":  {"InvalidQueryParameter"},
}

// codesElsewhere are packages that make faults for others than EC2's actions, with the reason.
var codesElsewhere = map[string]string{
	module + "internal/aws/awsfront":  "the front refuses before and after an action, and has tests of its own",
	module + "internal/aws/awsjson":   "a protocol of other services",
	module + "internal/aws/awsroute":  "the router refuses requests that no front sees",
	module + "internal/aws/jsonvalue": "a protocol of other services",
	module + "internal/aws/query":     "a protocol of other services",
	module + "internal/aws/restjson":  "a protocol of other services",
	module + "internal/aws/throttle":  "the front refuses by it, and has tests of its own",
}

// codesUnresolved has the codes that an expression can be, for expressions that this test does not resolve: by package,
// function and expression, as a failure names them.
var codesUnresolved = map[string][]string{}

// codesUnprovoked are codes that no request of a unit test can provoke, with the reason.
var codesUnprovoked = map[string]string{}

// Each error code of the sources is asserted by a test of this package. The sources and the tests are read and not run,
// so -run makes no difference.
func TestEachErrorCodeIsAsserted(t *testing.T) {
	sources := readSources(t)
	sources.findCodes()
	for place, expression := range sources.unresolved {
		t.Errorf("%s: the error code is not resolved: name the codes of %q in codesUnresolved", place, expression)
	}
	for expression := range codesUnresolved {
		if !sources.looked[expression] {
			t.Errorf("codesUnresolved has %q, which the sources do not need: remove it", expression)
		}
	}
	for pkg, others := range codesOfOthers {
		for _, code := range others {
			if sources.of[pkg][code] == nil {
				t.Errorf("codesOfOthers has %s of %s, which has no such code: remove it", code, pkg)
			}
		}
	}
	found := map[string][]string{}
	for pkg, codes := range sources.of {
		for code, places := range codes {
			if !slices.Contains(codesOfOthers[pkg], code) {
				found[code] = append(found[code], places...)
			}
		}
	}
	if len(found) < 80 {
		t.Errorf("found %d codes only: the test looks in the wrong place", len(found))
	}
	asserted := readAssertions(t, sources, slices.Sorted(maps.Keys(found)))
	for _, code := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[code])
		place := asserted[code]
		reason, unprovoked := codesUnprovoked[code]
		switch {
		case place == "" && !unprovoked:
			t.Errorf("no test of this package asserts %s, the code of %s", code, strings.Join(found[code], ", "))
		case place != "" && unprovoked:
			t.Errorf("codesUnprovoked has %s (%s), which %s asserts: remove it", code, reason, place)
		}
		if testing.Verbose() {
			t.Logf("%s: %s", code, place)
		}
	}
	for code := range codesUnprovoked {
		if found[code] == nil {
			t.Errorf("codesUnprovoked has %s, which the sources do not answer: remove it", code)
		}
	}
}
