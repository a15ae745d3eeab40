// SPDX-License-Identifier: Apache-2.0

// Package awsrecord keeps records: resources that AWS's APIs make and read back, and that have no effect here. Each is
// an AWSRecord of the management plane, and a Go type of its noun is in its spec.data.
//
//	var gateways = awsrecord.Kind[internetGateway]{Type: "internet-gateway"}
//
// A record is read strictly. A record that somebody wrote by hand with an unknown field is an error with the record's
// name, so that the next change does not drop the field in silence.
//
// What happens if
//
//	two change a record at once       the second reads it again, and changes what the first left
//	two make one of a name            the API server makes one; the other is told that it exists
//	the service is killed             the write was there or not
//	there is no such record           an error of which apierrors.IsNotFound is true, also if it is of another type
package awsrecord
