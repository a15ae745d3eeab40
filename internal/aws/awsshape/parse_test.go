// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const small = `service zoo restjson 2020-01-01
error NoSuchAnimal 404 NoSuchAnimal
operation FeedAnimal FeedRequest - POST /cages/{cage}/animals/{name}
operation ListAnimals ListRequest ListResponse GET /cages/{cage}/animals
operation InspectVets - - GET /cages/vets/animals
structure NoSuchAnimal
 message string
structure FeedRequest
 cage string label required
 name string label required
 food FoodList required
 token string token
 at timestamp time=date-time
structure Food
 kind string required
 grams integer
 notes Notes
map Notes string
list FoodList Food
structure ListRequest
 cage string label required
 max integer query=maxResults
structure ListResponse
 names Names name=animalNames
 nextToken string
list Names string in=item out=item
`

func parsed(t *testing.T) *Service {
	t.Helper()
	s, err := Parse(small)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	s := parsed(t)
	feed := s.Operation("FeedAnimal")
	if feed == nil || feed.Output != nil || feed.Method != Post || feed.Status != 200 || feed.Input.Member("at").Time != DateTime || !feed.Input.Member("token").Token {
		t.Errorf("FeedAnimal is %+v", feed)
	}
	if food := feed.Input.MemberIn("food").Shape.Item; food.Name != "Food" || food.Member("grams").Shape.Kind != Integer {
		t.Errorf("the food is %+v", food)
	}
	if s.Operation("ListAnimals").Output.Member("names").Out != "animalNames" || s.Shape("Names").ItemOut != "item" {
		t.Error("names on the wire are lost")
	}
	if s.Fault("NoSuchAnimal").Status != 404 || s.Fault("Other") != nil || s.Operation("Other") != nil {
		t.Error("errors and operations are not found")
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no service":          {"service zoo restjson 2020-01-01\n", "", "before the service"},
		"two services":        {"error NoSuchAnimal 404", "service a query 1\nerror NoSuchAnimal 404", "once"},
		"protocol":            {"restjson", "smoke", `protocol "smoke"`},
		"status":              {"404", "200", `status "200"`},
		"status of success":   {"GET /cages/vets/animals", "GET /cages/vets/animals 302", `status "302"`},
		"shape of an error":   {"404 NoSuchAnimal", "404 Gone", "shape Gone"},
		"shape of a member":   {"food FoodList", "food Fud", "shape Fud"},
		"word of a member":    {"grams integer", "grams integer heavy", `"heavy"`},
		"time format":         {"time=date-time", "time=roman", `"roman"`},
		"member twice":        {" grams integer", " kind integer", "member kind of Food comes twice"},
		"wire name twice":     {" grams integer", " grams integer in=kind", "comes twice"},
		"shape twice":         {"list Names string", "list FoodList string", "comes twice"},
		"a scalar's name":     {"list Names string", "list blob string", "comes twice"},
		"operation twice":     {"operation InspectVets", "operation ListAnimals", "comes twice"},
		"no label":            {" name string label required\n", "", "no label name"},
		"greedy label":        {"{name}", "{name+}", "whole segment"},
		"half a label":        {"{name}", "x-{name}", "whole segment"},
		"member of nothing":   {"structure NoSuchAnimal\n", "", "belongs to no structure"},
		"kind of line":        {"map Notes", "heap Notes", `"heap"`},
		"path without method": {"- - GET /cages/vets/animals", "- -", "a method and a path"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(small, c.old, c.new, 1)
			if text == small {
				t.Fatalf("%q is not in the table", c.old)
			}
			if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	s := parsed(t)
	for path, want := range map[string]string{
		"/cages/7/animals":            "ListAnimals 7",
		"/cages/vets/animals":         "InspectVets", // a literal is stronger than a label
		"/cages/a%2Fb/animals":        "ListAnimals a%2Fb",
		"/cages//animals":             "",
		"/cages/7/animals/":           "",
		"/cages/7/animals/tiger":      "", // it is a POST
		"/cages/7":                    "",
		"":                            "",
		"//cages/7/animals":           "",
		"/cages/7/animals/../animals": "",
		"/cages/../animals":           "", // it is signed as /animals
		"/cages/./animals":            "",
	} {
		op, labels := s.Match("GET", path)
		got := ""
		if op != nil {
			got = strings.TrimSpace(op.Name + " " + labels["cage"])
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	feed := parsed(t).Operation("FeedAnimal").Input
	got := feed.Missing(Object{"cage": "7", "food": []any{Object{"kind": "hay"}, Object{"grams": int64(3)}}})
	if diff := cmp.Diff([]string{"name", "food.2.kind"}, got); diff != "" {
		t.Error(diff)
	}
}

type paging struct{ NextToken string }

type food struct {
	Kind  string
	Grams *int32
	Notes map[string]string
}

type feedInput struct {
	CAGE, Name string
	Food       []food
	At         *time.Time
}

type listOutput struct {
	paging
	Names []string
}

func TestInto(t *testing.T) {
	feed := parsed(t).Operation("FeedAnimal").Input
	at := time.Unix(1, 0)
	var got feedInput
	unused, err := feed.Into(Object{
		"cage": "7", "name": "tiger", "token": "abc", "at": at,
		"food": []any{Object{"kind": "meat", "grams": int64(0), "notes": Object{"a": "b"}}},
	}, &got)
	if err != nil {
		t.Fatal(err)
	}
	zero := int32(0)
	want := feedInput{CAGE: "7", Name: "tiger", At: &at, Food: []food{{Kind: "meat", Grams: &zero, Notes: map[string]string{"a": "b"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"token"}, unused); diff != "" {
		t.Error(diff)
	}
}

func TestIntoTellsWhatNoFieldTakes(t *testing.T) {
	feed := parsed(t).Operation("FeedAnimal").Input
	var got struct{ Food []struct{ Kind string } }
	unused, err := feed.Into(Object{"cage": "7", "food": []any{Object{"kind": "a"}, Object{"grams": int64(1)}}}, &got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cage", "food.2.grams"}, unused); diff != "" {
		t.Error(diff)
	}
}

func TestCheck(t *testing.T) {
	feed := parsed(t).Operation("FeedAnimal").Input
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"fits":            {feedInput{}, ""},
		"a pointer":       {&feedInput{}, ""},
		"an object below": {struct{ Food []Object }{}, ""},
		"unknown":         {struct{ Cages string }{}, "no member of that name"},
		"another kind":    {struct{ Cage int }{}, "is a string"},
		"below":           {struct{ Food []struct{ Grams string } }{}, "member grams of Food is a integer"},
		"a map's values": {struct {
			Food []struct{ Notes map[string]int64 }
		}{}, "is a map"},
		"two for one member": {struct{ Cage, CAGE string }{}, "two fields"},
	} {
		t.Run(name, func(t *testing.T) {
			err := feed.Check(reflect.TypeOf(c.value))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestEachMember(t *testing.T) {
	list := parsed(t).Operation("ListAnimals").Output
	for name, c := range map[string]struct {
		value any
		want  []string
	}{
		"struct":        {listOutput{paging{"x"}, []string{"a"}}, []string{"names", "nextToken"}},
		"pointer":       {&listOutput{Names: []string{}}, []string{"names"}},
		"nothing is in": {listOutput{}, nil},
		"object":        {Object{"nextToken": ""}, []string{"nextToken"}},
		"nil":           {nil, nil},
		"nil pointer":   {(*listOutput)(nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			if err := list.EachMember(ValueOf(c.value), func(m *Member, _ Value) error { got = append(got, m.Name); return nil }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, wrong := range []any{Object{"name": "x"}, 7, struct{ Named string }{}} {
		if err := list.EachMember(ValueOf(wrong), func(*Member, Value) error { return nil }); err == nil {
			t.Errorf("%#v was taken for a ListResponse", wrong)
		}
	}
}

// A service may have other names in signatures and in policies.
func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"service zoo query 2020-01-01":                             "zoo zoo:Feed",
		"service zoo2 query 2021-01-01 signed=zoo policies=animal": "zoo animal:Feed",
	} {
		service, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := service.SignedName() + " " + service.PolicyAction("Feed"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
