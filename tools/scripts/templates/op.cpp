
LogicalResult @Camel @Op::verify() { return success(); }
