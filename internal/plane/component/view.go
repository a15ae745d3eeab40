// SPDX-License-Identifier: Apache-2.0

package component

// View is what a component has of the state directory where it runs as a user of its own (package planeid), besides the
// folder of its files. A component without one runs as the service does, and sees all.
//
// The files of View but those of Fixed are shown with the directories that they are in: a file that is replaced is
// another one, which only a directory shows. Other files in these directories belong to other users and are closed to
// the component.
type View struct {
	// Reads are files that it reads, with secrets: they are made its own.
	Reads []string `json:"reads,omitempty"`
	// Shared are files with secrets that another component reads too, whose own they are: they are made its group's.
	Shared []string `json:"shared,omitempty"`
	// Public are certificates of the cluster's, without keys, which are made readable to all.
	Public []string `json:"public,omitempty"`
	// Fixed are certificates of the account's, without keys. They are never replaced.
	Fixed []string `json:"fixed,omitempty"`
	// Writes are directories that are its own.
	Writes []string `json:"writes,omitempty"`
	// Adds are directories in which it makes files, with names that begin with Prefix, and others do: none removes or
	// replaces those of another.
	Adds []string `json:"adds,omitempty"`
	// Prefix begins the names of its own files in Adds.
	Prefix string `json:"prefix,omitempty"`
	// Listens are sockets that it makes, and Connects those that it uses (package socketdir).
	Listens  []string `json:"listens,omitempty"`
	Connects []string `json:"connects,omitempty"`
	// OwnNetwork is of a component that has no network but its own loopback interface (package netsandbox).
	OwnNetwork bool `json:"ownNetwork,omitempty"`
}
