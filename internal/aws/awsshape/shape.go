// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"cmp"
	"strings"
)

// Kind is what a shape is.
type Kind uint8

// The kinds.
const (
	String Kind = iota + 1
	Boolean
	Integer // 32 bits
	Long    // 64 bits
	Float   // 32 bits
	Double
	Blob
	Timestamp
	Document // any JSON
	Structure
	Union // a structure with exactly one member
	List
	Map // from strings
)

var kindNames = map[Kind]string{
	String: "string", Boolean: "boolean", Integer: "integer", Long: "long", Float: "float", Double: "double", Blob: "blob",
	Timestamp: "timestamp", Document: "document", Structure: "structure", Union: "union", List: "list", Map: "map",
}

// String is the kind's name in a table.
func (k Kind) String() string { return kindNames[k] }

// Shape is a type of values. Scalars have neither a name nor members.
type Shape struct {
	Name    string
	Kind    Kind
	Members []*Member // of a structure or union, in the order in which they are written

	Item    *Shape // of a list, or the values of a map
	ItemIn  string // the name of a list's items in a request of the query protocol
	ItemOut string // the name of a list's items in XML

	byName map[string]*Member // by the table's name
	byIn   map[string]*Member // by the name in a request
}

// Member finds a member by its name, or nil.
func (s *Shape) Member(name string) *Member { return s.byName[name] }

// MemberIn finds a member by its name on the wire of a request, or nil. Labels, headers and query parameters are not
// among them.
func (s *Shape) MemberIn(name string) *Member { return s.byIn[name] }

// Place is where in a request or an answer a member is.
type Place uint8

// The places.
const (
	Body    Place = iota
	Label         // a segment of the path
	Query         // a parameter of the query string
	Header        // an HTTP header
	Payload       // the member is the whole body
)

// TimeFormat is how a timestamp is written.
type TimeFormat uint8

// The formats. A protocol has one of its own for members that name none.
const (
	Usual    TimeFormat = iota
	DateTime            // 2006-01-02T15:04:05.000Z
	Epoch               // seconds since 1970, with a fraction
	HTTPDate            // Mon, 02 Jan 2006 15:04:05 GMT
	Short               // 2006-01-02T15:04:05Z, as STS and IAM have it
)

// Member is a named part of a structure.
type Member struct {
	Name     string // the API's name, which messages show
	Shape    *Shape
	In, Out  string // names on the wire, of requests and of answers
	Place    Place
	Required bool
	Beyond   bool // AWS answers it, and its model does not have it
	Token    bool // an idempotency token: clients invent one if the caller gives none
	FlatIn   bool // a list of the query protocol without a level for its items
	FlatOut  bool
	Time     TimeFormat
}

// Operation is one action of a service.
type Operation struct {
	Service *Service
	Name    string
	Input   *Shape // nil without members
	Output  *Shape // nil without members
	Method  string // restjson alone, as the path
	Path    string // such as /clusters/{name}
	Status  int    // of answers that are no refusals

	segments []segment
}

type segment struct {
	literal string
	label   string // the member's name; literal is "" then
}

// Fault is an error that a service declares.
type Fault struct {
	Code   string
	Status int
	Shape  *Shape // of the members beside the message; nil without such members
}

// Protocol is how a service's requests and answers are written.
type Protocol string

// The protocols.
const (
	RestJSON Protocol = "restjson"
	JSON10   Protocol = "awsjson1.0"
	JSON11   Protocol = "awsjson1.1"
	QueryXML Protocol = "query"
	EC2Query Protocol = "ec2query"
)

// Service is one API.
type Service struct {
	Name      string // as signatures and policies name it, unless Signed or Policies says otherwise: eks
	Protocol  Protocol
	Version   string // 2017-11-01
	Target    string // the part of X-Amz-Target before the dot: AmazonSSM
	Namespace string // of XML
	// Signed is the name in signatures, and Policies the prefix of actions in policies; empty where it is the Name.
	Signed, Policies string
	// Identity is set for STS and IAM. Their forms are read strictly: what one of their actions ignored might be what
	// bounds a permission.
	Identity bool
	// Versions are the services of one endpoint, if the Version of a form says which of them it is for.
	Versions []*Service

	Operations []*Operation // sorted by name
	Faults     []*Fault     // sorted by code

	operations map[string]*Operation
	faults     map[string]*Fault
	shapes     map[string]*Shape
}

// SignedName is the name of the service in signatures.
func (s *Service) SignedName() string { return cmp.Or(s.Signed, s.Name) }

// PolicyAction is an action as policies name it, such as eks:DescribeCluster.
func (s *Service) PolicyAction(action string) string {
	return cmp.Or(s.Policies, s.Name) + ":" + action
}

// Operation finds an operation by its name, or nil.
func (s *Service) Operation(name string) *Operation { return s.operations[name] }

// Fault finds a declared error by its code, or nil.
func (s *Service) Fault(code string) *Fault { return s.faults[code] }

// Shape finds a structure, list or map by its name, or nil.
func (s *Service) Shape(name string) *Shape { return s.shapes[name] }

// MaxBody is how many bytes the body of a request may have. The largest that AWS takes is that of KMS's and Systems
// Manager's values; user data has 16 KiB. A policy document has 131,072 characters at most, with white space, and form
// encoding makes up to three bytes of each.
func (s *Service) MaxBody() int64 {
	if s.Identity {
		return 512 << 10
	}
	switch s.Name {
	case "sqs": // a message has 1 MiB
		return 2 << 20
	case "logs": // a batch of events has 1 MiB, which JSON makes larger
		return 4 << 20
	}
	return 256 << 10
}

// Match finds the operation that a method and path belong to, and the labels of the path, still escaped. The path is
// the escaped one, so a label may hold %2F. A path with "." or ".." for a label belongs to no operation: its signature is
// that of the path without them.
func (s *Service) Match(method, path string) (*Operation, map[string]string) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var best *Operation
	var labels map[string]string
	for _, op := range s.Operations {
		if op.Method != method {
			continue
		}
		// A literal is stronger than a label in its place.
		if found, ok := op.match(parts); ok && (best == nil || len(found) < len(labels)) {
			best, labels = op, found
		}
	}
	return best, labels
}

func (o *Operation) match(parts []string) (map[string]string, bool) {
	if len(parts) != len(o.segments) {
		return nil, false
	}
	labels := map[string]string{}
	for i, s := range o.segments {
		switch {
		case s.label == "" && parts[i] == s.literal:
		case s.label != "" && parts[i] != "" && parts[i] != "." && parts[i] != "..":
			labels[s.label] = parts[i]
		default:
			return nil, false
		}
	}
	return labels, true
}
