// What holds the namespaces of a pod: the image that the node's containerd runs beside each pod's containers.
module dgdr.test/pause

go 1.24.0
