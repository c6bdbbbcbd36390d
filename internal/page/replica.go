// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "github.com/tokenpulse/tokenpulse/internal/names"

// replicaNames are the attributes that name a replica, the first one counts. The server's address comes first,
// because the others name the client on a client's span.
var replicaNames = []string{names.ServerAddress, names.ServiceInstanceID, "k8s.pod.name", "host.name"}

// ReplicaOf returns the name of the replica that served a request, or "". value returns an attribute of the request or of
// its resource, or "".
func ReplicaOf(value func(name string) string) string {
	for _, name := range replicaNames {
		replica := value(name)
		if replica == "" {
			continue
		}
		if port := value(names.ServerPort); name == names.ServerAddress && port != "" {
			replica += ":" + port
		}
		return replica
	}
	return ""
}
